package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// hungTime is how long everybody is ready to wait for a server that hangs, and hungSlack by how
	// much that may be exceeded.
	hungTime, hungSlack = 200 * time.Millisecond, 50 * time.Millisecond

	// hungTries is how often it is measured until a measurement is good: the machine may be busy.
	hungTries = 4

	// hungClose is what Close may take beyond its CloseTimeout, for the connections.
	hungClose = time.Second
)

// hung is a way in which servers hang. They do until go on is called.
type hung struct {
	url    string
	hang   func(t testing.TB)
	goOn   func(t testing.TB)
	direct string // reaches the servers whatever hangs in between; empty if there is no such way
}

// hungServer is stopped by SIGSTOP: it keeps connections and accepts more.
func hungServer(t testing.TB) *hung {
	s := servers.RedisServer(t, nil)
	return hungNodes(redisURL("redis", s.Addr()), []*servers.RedisNode{s})
}

// hungSentinel has everybody stopped, the Sentinels too, or they would replace the primary.
func hungSentinel(t testing.TB) *hung {
	s := servers.RedisSentinel(t, 1, nil)
	return hungNodes(sentinelURL(s), append(s.SentinelNodes(), s.Nodes()...))
}

func hungCluster(t testing.TB) *hung {
	c := servers.RedisCluster(t, 3, 0, nil)
	return hungNodes(redisURL("redis+cluster", c.Addrs()...), c.Nodes())
}

func hungNodes(url string, nodes []*servers.RedisNode) *hung {
	return &hung{
		url: url,
		hang: func(testing.TB) {
			for _, n := range nodes {
				n.Stop()
			}
		},
		goOn: func(testing.TB) {
			for i := range nodes { // servers before the Sentinels
				nodes[len(nodes)-1-i].Cont()
			}
		},
	}
}

// hungProxy is mute in the given directions: it accepts, but nothing passes.
func hungProxy(t testing.TB, d servers.Direction) *hung {
	s := servers.RedisServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	return &hung{
		url: redisURL("redis", p.Addr()), direct: redisURL("redis", s.Addr()),
		hang: func(testing.TB) { p.BlackHole(d) }, goOn: func(testing.TB) { p.Pass() },
	}
}

func TestHung_EveryOperationReturnsWithItsContext(t *testing.T) {
	for name, start := range map[string]func(t testing.TB) *hung{
		"AServerThatIsStopped":   hungServer,
		"AProxyThatIsMute":       func(t testing.TB) *hung { return hungProxy(t, servers.BothWays) },
		"AProxyWithoutReplies":   func(t testing.TB) *hung { return hungProxy(t, servers.ToClient) },
		"EveryNodeUnderSentinel": hungSentinel,
		"EveryNodeOfACluster":    hungCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			everythingHung(t, h)
		})
	}
}

// hungCall is one operation, which gets a context of hungTime. It is made hungTries times at most.
type hungCall struct {
	name string
	call func(ctx context.Context, try int) error
}

func everythingHung(t *testing.T, h *hung) {
	o := &interlock.Options{Lease: 30 * time.Second, ClientName: "hung", CloseTimeout: hungTime}
	c, busy := openLocks(t, h.url, o), openLocks(t, h.url, o)
	var closed []*interlock.Client
	leases := func(what string) (all []*interlock.Lease) {
		for i := range hungTries {
			all = append(all, mustLock(t, c, fmt.Sprint(what, i)))
		}
		return all
	}
	unlock, extend, reenter := leases("unlock"), leases("extend"), leases("reenter")
	for i := range hungTries {
		closed = append(closed, openLocks(t, h.url, o))
		mustLock(t, closed[i], fmt.Sprint("closed", i))
	}
	mustLock(t, busy, "busy")
	calls := []hungCall{
		{"Lock", func(ctx context.Context, try int) error { return second(c.Lock(ctx, fmt.Sprint("new", try))) }},
		{"Lock of what another holds", func(ctx context.Context, _ int) error { return second(c.Lock(ctx, "busy")) }},
		{"Lock as a named owner", func(ctx context.Context, try int) error {
			return second(c.Lock(interlock.WithOwner(ctx, "me"), fmt.Sprint("named", try)))
		}},
		{"Lock again by its holder", func(ctx context.Context, try int) error {
			return second(c.Lock(reenter[try].Context(ctx), reenter[try].Name()))
		}},
		{"TryLock", func(ctx context.Context, try int) error { return second(c.TryLock(ctx, fmt.Sprint("try", try))) }},
		{"Do", func(ctx context.Context, try int) error {
			return c.Do(ctx, fmt.Sprint("do", try), func(context.Context) error { return nil })
		}},
		{"Unlock", func(ctx context.Context, try int) error { return unlock[try].Unlock(ctx) }},
		{"Extend", func(ctx context.Context, try int) error { return extend[try].Extend(ctx, time.Minute) }},
		{"Break", func(ctx context.Context, _ int) error { return c.Break(ctx, "mutex", "busy", 1) }},
		{"Locks", func(ctx context.Context, _ int) error {
			for _, err := range c.List(ctx, "") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"Open", func(ctx context.Context, _ int) error {
			opened, err := interlock.Open(ctx, h.url, o)
			if err == nil {
				_ = opened.Close()
			}
			return err
		}},
		{"Close", func(_ context.Context, try int) error { return closed[try].Close() }},
	}
	waiting := cancelledWaits(t, c)
	h.hang(t)
	waiting()
	for _, call := range calls {
		endsInTime(t, call)
	}
	h.goOn(t)
	after := openLocks(t, h.url, o)
	for _, name := range []string{"new0", "named0", "try0", "do0", "unlock0"} { // the undoing goes on until it is done
		mustUnlock(t, mustLock(t, after, name))
	}
	if err := reenter[0].Err(); err != nil {
		t.Errorf("a hold did not outlast it: %v", err)
	}
}

// cancelledWaits begins to wait for what another holds. The function that it returns cancels that, and wants an end at
// once, by a clock that stands still while this process does.
func cancelledWaits(t *testing.T, c *interlock.Client) func() {
	t.Helper()
	type end struct {
		err error
		at  time.Duration
	}
	clock := pace.Process()
	ctx, cancel := context.WithCancel(context.Background())
	ends := make(chan end, hungTries)
	for range hungTries {
		go func() { // ends with ctx
			err := second(c.Lock(ctx, "busy"))
			ends <- end{err, clock.Now()}
		}()
	}
	soon(t, "the wait to be queued", func() bool {
		for info, err := range c.List(patient(t), "busy") {
			return err == nil && len(info.Waiters) == 1 // of one process only the first is known
		}
		return false
	})
	return func() {
		begin := clock.Now()
		cancel()
		soonest := time.Hour
		for range hungTries {
			e := receive(t, "a cancelled wait to end", ends)
			soonest = min(soonest, e.at-begin)
			if !errors.Is(e.err, context.Canceled) || !errors.Is(e.err, interlock.ErrHeld) {
				t.Errorf("a cancelled wait ends with %v", e.err)
			}
		}
		if soonest > hungSlack {
			t.Errorf("cancelled waits ended after %v at the soonest", soonest)
		}
	}
}

func second(_ *interlock.Lease, err error) error { return err }

// endsInTime wants the call to say in time that it does not know. Time in which this process
// stands still does not count.
func endsInTime(t *testing.T, c hungCall) {
	t.Helper()
	limit := hungTime + hungSlack
	if c.name == "Close" {
		limit += hungClose
	}
	var took []time.Duration
	clock := pace.Process()
	for try := range hungTries {
		ctx, cancel := context.WithTimeout(context.Background(), hungTime)
		begin := clock.Now()
		err := c.call(ctx, try)
		took = append(took, clock.Now()-begin)
		cancel()
		if err == nil {
			t.Errorf("%s: it has succeeded while everybody hangs", c.name)
			return
		}
		if !errors.Is(err, interlock.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the error says something else than that nobody answers: %v", c.name, err)
		}
		if took[try] < limit {
			t.Logf("%-28s %v: %v", c.name, took[try].Round(time.Millisecond), err)
			return
		}
	}
	t.Errorf("%s: with %v it took %v", c.name, hungTime, took)
}
