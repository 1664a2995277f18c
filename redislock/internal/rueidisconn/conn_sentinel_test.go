package rueidisconn

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

func TestSentinel_CallsAndPushesFollowThePrimary(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisSentinel(t, 1, nil)
	h := newTeller()
	c := start(t, rueidis.ClientOption{
		InitAddress: s.Sentinels(), DisableCache: true, Sentinel: rueidis.SentinelOption{MasterSet: s.Name()},
	}, h)
	push := conn.Call{Script: pushScript, Args: []string{testChannel, "news"}}
	count := conn.Call{Script: incrScript, Keys: []string{"n"}}
	for name, failOver := range map[string]func() *servers.RedisNode{
		"killed":  s.KillPrimary, // the connection breaks
		"planned": s.Failover,    // it may go on, to a server that is a replica now
		"hung": func() *servers.RedisNode { // it goes on, and nothing is heard
			old := s.Primary()
			old.Stop()
			defer old.Cont()
			now := s.AwaitFailover(old)
			followsHung(t, c, count)
			return now
		},
	} {
		_, before := mustCall(t, c, push)
		h.Want(t, pushed(before, testChannel, "news"))
		mustCall(t, c, count)
		var all sync.WaitGroup
		done := make(chan struct{})
		all.Go(func() { // meanwhile calls are refused at worst, or their outcome is open
			for {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				c.Call(ctx, &count)
				cancel()
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		primary := failOver()
		close(done)
		all.Wait()
		eventually(t, "a call at the new primary ("+name+")", func() bool {
			return c.Call(t.Context(), &count).Err == nil
		})
		_, after := mustCall(t, c, push)
		if after == before {
			t.Errorf("%s: link %d goes on", name, before)
		}
		for drops := 0; ; {
			var got told
			select {
			case got = <-h.All:
			case <-time.After(5 * patience):
				t.Fatalf("%s: after %d drops the handler was not told", name, drops)
			}
			if got.Channel == "" {
				drops++
				continue
			}
			if got != pushed(after, testChannel, "news") || drops < 2 {
				t.Errorf("%s: after %d drops the handler was told %+v", name, drops, got)
			}
			break
		}
		if nodes := nodesOf(t, c, 1); nodes[0].Addr() != primary.Addr() {
			t.Errorf("%s: Nodes: %v, want %s", name, nodes, primary.Addr())
		}
		s.RestartDead()
	}
}

// followsHung waits until calls succeed although the server that they went to before hangs.
func followsHung(t *testing.T, c conn.Conn, call conn.Call) {
	t.Helper()
	clock := pace.Process()
	begin := clock.Now()
	eventually(t, "a call to succeed while the old primary hangs", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return c.Call(ctx, &call).Err == nil
	})
	if d := clock.Now() - begin; d > 5*time.Second { // rueidis gives the connection up after 11 s
		t.Errorf("after the failover calls failed for %v more", d)
	}
}
