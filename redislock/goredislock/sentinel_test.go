package goredislock

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

func TestSentinel_CallsAndPushesFollowThePrimary(t *testing.T) {
	longrun.Only(t) // rueidisconn has it in every run
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisSentinel(t, 1, nil)
	h := newTeller()
	c := begin(t, redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: s.Name(), SentinelAddrs: s.Sentinels(),
	}), h)
	call := lockCall(t, "a")
	for _, test := range []struct {
		name     string
		failOver func() *servers.RedisNode
	}{
		{"killed", func() *servers.RedisNode { // the connections break
			old := s.Primary()
			old.Kill()
			waitsForAFailover(t, c, call)
			return s.AwaitFailover(old)
		}},
		{"planned", s.Failover}, // they may go on, to a server that is a replica now
		{"hung", func() *servers.RedisNode { // they go on, and nothing is heard
			old := s.Primary()
			old.Stop()
			now := s.AwaitFailover(old)
			followsHung(t, c, call)
			h.WantDrop(t) // hears may have published more than once
			old.Cont()
			return now
		}},
	} {
		hears(t, h, s.Primary(), "before "+test.name)
		mustCall(t, c, call)
		var all sync.WaitGroup
		done := make(chan struct{})
		all.Go(func() { // meanwhile calls are refused at worst, or their outcome is open
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				c.Call(ctx, &call)
				cancel()
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		now := test.failOver()
		close(done)
		all.Wait()
		eventually(t, "a call at the new primary ("+test.name+")", func() bool {
			return c.Call(t.Context(), &call).Err == nil
		})
		hears(t, h, now, "after "+test.name)
		if nodes := nodesOf(t, c, 1); nodes[0].Addr() != "the primary" {
			t.Errorf("%s: Nodes: %v", test.name, nodes)
		}
		s.RestartDead()
	}
}

// waitsForAFailover runs calls until one says that there is no server, which it must not do before patience ends.
func waitsForAFailover(t *testing.T, c *transport, call conn.Call) {
	t.Helper()
	for {
		begin := time.Now()
		r := c.Call(t.Context(), &call)
		if r.Err == nil {
			return
		}
		if isRefused(r.Err) {
			if d := time.Since(begin); d < patience {
				t.Errorf("after %v: %v", d, r.Err)
			}
			return
		}
	}
}

// hears publishes until the handler is told.
func hears(t *testing.T, h *teller, node *servers.RedisNode, text string) {
	t.Helper()
	eventually(t, "the handler hears "+text, func() bool {
		publish(t, node.Addr(), text)
		for {
			select {
			case got := <-h.All:
				if got == pushed(0, testChannel, text) {
					return true
				}
			case <-time.After(50 * time.Millisecond):
				return false
			}
		}
	})
}
