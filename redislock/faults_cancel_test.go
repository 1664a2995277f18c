package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

var cancels = longrun.Of(30, 100)

// cancelBound is how soon a lock is free whose acquisition was cancelled. The undoing takes one round trip; the bound
// is for a machine that is busy, and far below the lease and the life of an unclaimed grant, 2 s.
const cancelBound = 500 * time.Millisecond

func TestCancel_AtAnyMoment_LeavesTheLockFreeAtOnce(t *testing.T) {
	uncontended, contended := (*locktest.Canceller).Uncontended, (*locktest.Canceller).Contended
	t.Run("Uncontended", func(t *testing.T) { cancelled(t, 0, uncontended) })
	t.Run("Contended", func(t *testing.T) { cancelled(t, 0, contended) })
	t.Run("Uncontended_OverASlowNetwork", func(t *testing.T) { cancelled(t, 3*time.Millisecond, uncontended) })
	t.Run("Contended_OverASlowNetwork", func(t *testing.T) { cancelled(t, 3*time.Millisecond, contended) })
}

func cancelled(t *testing.T, delay time.Duration, once func(c *locktest.Canceller, t testing.TB, name string)) {
	s := servers.RedisServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	clock := pace.Of(t, s)
	c := &locktest.Canceller{Rand: newRand(t), Watch: locktest.NewNews()}
	c.Asks = openLocks(t, redisURL("redis", p.Addr()), &interlock.Options{Observer: c.Watch.Observer()})
	c.Holds, c.Tries = openLocks(t, redisURL("redis", s.Addr()), nil), openLocks(t, redisURL("redis", s.Addr()), nil)
	p.Delay(servers.BothWays, delay)
	c.Measure(t, 20*time.Millisecond)
	var free []time.Duration
	for i := range cancels {
		name := fmt.Sprint("lock ", i)
		once(c, t, name)
		asked := clock.Now()
		c.Late = func(time.Time) bool { return clock.Now()-asked > cancelBound }
		free = append(free, c.FreeAfter(t, name))
	}
	slices.Sort(free)
	t.Logf("free after: median %v, worst %v", free[cancels/2], free[cancels-1])
	p.Delay(servers.BothWays, 0)
	noneLeft(t, s)
}

// A waiter behind one that is cancelled gets in as soon as the holder has gone, wherever the cancelled one stands.
func TestCancel_OfWaitersInFront_KeepsNobodyBehindThem(t *testing.T) {
	s := servers.RedisServer(t, nil)
	r := newRand(t)
	watch := locktest.NewNews()
	o := &interlock.Options{Observer: watch.Observer()}
	holds := openLocks(t, redisURL("redis", s.Addr()), o)
	last := openLocks(t, redisURL("redis", s.Addr()), o)
	var fronts []*interlock.Client
	for range 3 {
		fronts = append(fronts, openLocks(t, redisURL("redis", s.Addr()), o))
	}
	clock := pace.Of(t, s)
	var worst time.Duration
	for i := range 30 {
		name := fmt.Sprint("lock ", i)
		held := mustLock(t, holds, name)
		var cancels []context.CancelFunc
		wait := func(ctx context.Context, c *interlock.Client) chan *interlock.Lease {
			in := make(chan *interlock.Lease, 1)
			go func() {
				l, err := c.Lock(ctx, name)
				if err == nil && ctx.Err() != nil {
					mustUnlock(t, l)
				}
				in <- l
			}()
			receive(t, "a wait to be queued", watch.Queued)
			return in
		}
		var frontIn []chan *interlock.Lease
		for _, c := range fronts {
			ctx, cancel := context.WithCancel(context.Background())
			cancels = append(cancels, cancel)
			frontIn = append(frontIn, wait(ctx, c))
		}
		lastIn := wait(patient(t), last)
		for _, at := range r.Perm(len(cancels) + 1) {
			if at < len(cancels) {
				time.AfterFunc(time.Duration(r.Int64N(int64(2*time.Millisecond))), cancels[at])
				continue
			}
			mustUnlock(t, held)
		}
		begin := clock.Now()
		for _, in := range frontIn {
			if l := receive(t, "a cancelled wait to end", in); l != nil && l.Err() == nil {
				mustUnlock(t, l)
			}
		}
		mustUnlock(t, receive(t, "who waits behind them to get in", lastIn))
		worst = max(worst, clock.Now()-begin)
	}
	t.Logf("the worst took %v", worst)
	if worst > cancelBound {
		t.Errorf("who waited behind cancelled waiters got in after %v", worst)
	}
	noneLeft(t, s)
}
