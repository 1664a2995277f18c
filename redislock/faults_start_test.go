package redislock

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// A server may hang when it has said hello already. Who has given up does not wait for the farewell either.
func TestStart_OnAServerThatHangsInBetween_ReturnsWithItsContext(t *testing.T) {
	s := servers.RedisServer(t, nil)
	for _, word := range []string{"subscribe", "INFO"} { // the link is made, and the set-up is looked at
		t.Run("Start at "+word, func(t *testing.T) {
			t.Parallel()
			option := rueidis.ClientOption{InitAddress: []string{hangsAt(t, s.Addr(), word)}, DisableCache: true}
			client, err := rueidis.NewClient(option)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			endsInTime(t, "Start", 250*time.Millisecond, func(ctx context.Context) error {
				_, err := Start(ctx, client, nil)
				return err
			})
		})
	}
	t.Run("Open", func(t *testing.T) {
		t.Parallel()
		u, err := driver.ParseURL("redis://" + hangsAt(t, s.Addr(), "subscribe"))
		if err != nil {
			t.Fatal(err)
		}
		endsInTime(t, "Open", 250*time.Millisecond, func(ctx context.Context) error {
			_, err := openURL(ctx, u, driver.Config{})
			return err
		})
	})
}

// hangsAt returns an address at which the server is reached until a client says the word, and hangs from then on.
func hangsAt(t *testing.T, server, word string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var hangs atomic.Bool
	pass := func(to, from net.Conn) { // ends with either
		defer func() { _ = to.Close() }()
		b := make([]byte, 1<<16)
		for {
			n, err := from.Read(b)
			if bytes.Contains(bytes.ToLower(b[:n]), bytes.ToLower([]byte("\n"+word+"\r"))) {
				hangs.Store(true)
			}
			if err == nil && !hangs.Load() {
				_, err = to.Write(b[:n])
			}
			if err != nil {
				return
			}
		}
	}
	go func() { // ends with the test
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", server)
			if err != nil {
				_ = near.Close()
				return
			}
			go pass(far, near)
			go pass(near, far)
		}
	}()
	return l.Addr().String()
}
