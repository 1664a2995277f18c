package redislock_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

// deafConn is a connection to a Sentinel that loses what is said of failovers, once deaf is set.
type deafConn struct {
	net.Conn

	deaf *atomic.Bool
}

// Read gives the channel of the message another name, which nobody has subscribed to.
func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.deaf.Load() {
		heard := bytes.ReplaceAll(b[:n],
			[]byte("\r\nmessage\r\n$14\r\n+switch-master"), []byte("\r\nmessage\r\n$14\r\n+nobody-listen"))
		copy(b, heard)
	}
	return n, err
}

// The old primary lives on as a replica, so no connection ends, and the message was lost: a Sentinel is asked again.
func TestSentinel_WhoMissedAFailover_FindsThePrimary(t *testing.T) {
	t.Parallel()
	s := servers.RedisSentinel(t, 1, nil)
	var deaf atomic.Bool
	d, err := redislock.Connect(t.Context(), rueidis.ClientOption{
		InitAddress: s.Sentinels(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name()},
		DialCtxFn: func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, "tcp", addr)
			if err == nil && slices.Contains(s.Sentinels(), addr) {
				c = &deafConn{c, &deaf}
			}
			return c, err
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	mustUnlock(t, mustLock(t, c, "before"))
	deaf.Store(true)
	s.AwaitReady()
	s.Failover()
	l, err := c.Lock(veryPatient(t), "after")
	if err != nil {
		t.Fatalf("after the failover: %v", err)
	}
	mustUnlock(t, l)
}
