package goredislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// go-redis tries a command up to four times, which would count here.
func TestCalls_OverConnectionsThatAreReset_AreSentOnce(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	c := begin(t, redis.NewClient(&redis.Options{Addr: proxy.Addr(), MaxRetries: 10}), newTeller())
	mustCall(t, c, lockCall(t, "first")) // its source was sent: from now on evalsha is what counts
	before := ran(t, addr, "evalsha")
	var answered, open, refusals atomic.Int64
	count := func(r conn.Reply) {
		switch {
		case r.Err == nil:
			answered.Add(1)
		case isRefused(r.Err):
			refusals.Add(1)
		default:
			open.Add(1)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for g := range 32 {
		callers.Go(func() {
			call := lockCall(t, fmt.Sprint(g))
			for i := 0; ctx.Err() == nil; i++ {
				switch i % 8 {
				case 6:
					for _, r := range runBatch(t.Context(), t, c, []conn.Call{call, call}) {
						count(r)
					}
				case 7:
					acked := call
					acked.Replicas, acked.ReplicaTimeout = 1, time.Millisecond
					count(c.Call(t.Context(), &acked))
				default:
					count(c.Call(t.Context(), &call))
				}
			}
		})
	}
	for range 20 {
		n := answered.Load()
		eventually(t, "calls to succeed", func() bool { return answered.Load() > n+100 })
		proxy.Reset()
	}
	cancel()
	callers.Wait()
	got, most := int64(ran(t, addr, "evalsha")-before), answered.Load()+open.Load()
	if got < answered.Load() || got > most || open.Load() == 0 {
		t.Errorf("%d calls succeeded and %d are open, but %d ran", answered.Load(), open.Load(), got)
	}
	t.Logf("%d succeeded, %d open, %d refused, %d ran", answered.Load(), open.Load(), refusals.Load(), got)
}

func TestCall_WhoseReplyIsLost_LeavesTheOutcomeOpen(t *testing.T) {
	addr := servers.Redis(t)
	proxy := servers.NewProxy(t, addr)
	c := begin(t, redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: time.Second}), newTeller())
	mustCall(t, c, lockCall(t, "a"))
	before := ran(t, addr, "evalsha")
	proxy.DropReplies()
	call := lockCall(t, "b")
	if r := c.Call(t.Context(), &call); r.Err == nil || isRefused(r.Err) { // the client's time limit
		t.Errorf("got %+v, want an open outcome", r)
	}
	if n := ran(t, addr, "evalsha") - before; n != 1 {
		t.Errorf("the call was sent %d times", n)
	}
}

func TestCall_WithoutAServer_IsRefusedSoon(t *testing.T) {
	s := servers.RedisServer(t, nil)
	h := newTeller()
	c := begin(t, redis.NewClient(&redis.Options{Addr: s.Addr(), DialerRetries: 1}), h)
	mustCall(t, c, lockCall(t, "a"))
	s.Kill()
	h.Want(t, told{})
	eventually(t, "a refusal", func() bool { // connections that broke unnoticed leave the outcome open
		call := lockCall(t, "a")
		return isRefused(c.Call(t.Context(), &call).Err)
	})
	for _, call := range []conn.Call{lockCall(t, "a"), replicated(lockCall(t, "a"))} {
		clock := pace.Process()
		begin := clock.Now()
		if r := c.Call(t.Context(), &call); !isRefused(r.Err) {
			t.Errorf("got %+v, want a refusal", r)
		}
		if d := clock.Now() - begin; d > time.Second {
			t.Errorf("the refusal took %v", d)
		}
	}
	h.None(t) // not before there is somebody to ask
	s.Restart()
	h.Want(t, told{Resumed: true})
	eventually(t, "a call to succeed", func() bool {
		call := lockCall(t, "a")
		return c.Call(t.Context(), &call).Err == nil
	})
}

func TestEverything_WhileTheServerHangs_EndsWithItsContext(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	for _, enabled := range []bool{false, true} {
		t.Run(fmt.Sprintf("ContextTimeoutEnabled=%v", enabled), func(t *testing.T) {
			s := servers.RedisServer(t, nil)
			option := redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: enabled}
			fresh, again := option, option
			c := begin(t, redis.NewClient(&option), newTeller())
			nodes := nodesOf(t, c, 1)
			call := lockCall(t, "a")
			mustCall(t, c, call)
			acked := replicated(call)
			both := make([]conn.Call, mostPipelined+2)
			for i := range both {
				both[i] = call
			}
			both[0] = acked
			s.Stop()
			defer s.Cont()
			for name, f := range map[string]func(ctx context.Context) error{
				"Call":               func(ctx context.Context) error { return c.Call(ctx, &call).Err },
				"Call with Replicas": func(ctx context.Context) error { return c.Call(ctx, &acked).Err },
				"Batch": func(ctx context.Context) (err error) {
					for _, r := range runBatch(ctx, t, c, both) {
						err = r.Err
					}
					return err
				},
				"Nodes": func(ctx context.Context) error { _, err := c.Nodes(ctx); return err },
				"Do":    func(ctx context.Context) error { _, err := nodes[0].Do(ctx, "PING"); return err },
			} {
				endsInTime(t, name, f)
			}
			// More than there are connections.
			var callers sync.WaitGroup
			for range 500 {
				callers.Go(func() {
					endsInTime(t, "one of many Calls", func(ctx context.Context) error {
						return c.Call(ctx, &call).Err
					})
				})
			}
			callers.Wait()
			endsInTime(t, "Start", func(ctx context.Context) error {
				options := &fresh
				fresh, again = again, fresh
				return opened(t, redis.NewClient(options)).Start(ctx, testChannel, newTeller())
			})
			s.Cont()
			mustCall(t, c, call)
		})
	}
}

func TestClose_WhileTheServerHangs_TakesSecondsAtMost(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c := begin(t, redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: time.Minute}), newTeller())
	call := lockCall(t, "a")
	mustCall(t, c, call)
	s.Stop()
	defer s.Cont()
	ended := make(chan conn.Reply, 1)
	go func() { ended <- c.Call(t.Context(), &call) }()
	eventually(t, "the call to be under way", func() bool { return c.single.PoolStats().IdleConns == 0 })
	clock := pace.Process()
	begin := clock.Now()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if r := <-ended; r.Err == nil || isRefused(r.Err) {
		t.Errorf("got %+v, want an open outcome", r)
	}
	if d := clock.Now() - begin; d > 3*time.Second {
		t.Errorf("Close took %v", d)
	}
}

// A request whose context has ended is not sent.
func TestCall_WithAContextThatHasEnded_IsRefused(t *testing.T) {
	addr := servers.Redis(t)
	c := begin(t, solo(addr), newTeller())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call := lockCall(t, "a")
	if r := c.Call(ctx, &call); !isRefused(r.Err) || !errors.Is(r.Err, context.Canceled) {
		t.Errorf("got %+v", r)
	}
	if n := ran(t, addr, "evalsha"); n != 0 {
		t.Errorf("%d were sent", n)
	}
}
