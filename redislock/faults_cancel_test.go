package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	t.Run("Uncontended", func(t *testing.T) { cancelled(t, 0, uncontended) })
	t.Run("Contended", func(t *testing.T) { cancelled(t, 0, contended) })
	t.Run("Uncontended_OverASlowNetwork", func(t *testing.T) { cancelled(t, 3*time.Millisecond, uncontended) })
	t.Run("Contended_OverASlowNetwork", func(t *testing.T) { cancelled(t, 3*time.Millisecond, contended) })
}

// canceller has what the cancelled acquisitions need.
type canceller struct {
	t     *testing.T
	rand  *rand.Rand
	trip  time.Duration // within which a moment is chosen
	watch *locktest.News
	clock *pace.Clock

	asks, holds, tries *interlock.Client
}

func cancelled(t *testing.T, delay time.Duration, once func(c *canceller, name string)) {
	s := servers.RedisServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	c := &canceller{t: t, rand: newRand(t), watch: locktest.NewNews(), clock: pace.Of(t, s)}
	c.asks = openLocks(t, redisURL("redis", p.Addr()), &interlock.Options{Observer: c.watch.Observer()})
	c.holds, c.tries = openLocks(t, redisURL("redis", s.Addr()), nil), openLocks(t, redisURL("redis", s.Addr()), nil)
	p.Delay(servers.BothWays, delay)
	begin := time.Now()
	mustUnlock(t, mustLock(t, c.asks, "once")) // so that the scripts are loaded
	c.trip = min(time.Since(begin), 20*time.Millisecond)
	var free []time.Duration
	for i := range cancels {
		name := fmt.Sprint("lock ", i)
		once(c, name)
		free = append(free, c.freeAfter(name))
	}
	slices.Sort(free)
	t.Logf("free after: median %v, worst %v", free[cancels/2], free[cancels-1])
	p.Delay(servers.BothWays, 0)
	noneLeft(t, s)
}

// freeAfter returns how long it took until another client's try succeeded.
func (c *canceller) freeAfter(name string) time.Duration {
	c.t.Helper()
	begin, asked := time.Now(), c.clock.Now()
	for {
		late := c.clock.Now()-asked > cancelBound
		l, err := c.tries.TryLock(patient(c.t), name)
		took := time.Since(begin)
		if err == nil {
			mustUnlock(c.t, l)
			return took
		}
		if !errors.Is(err, interlock.ErrHeld) || late {
			c.t.Fatalf("%q is not free %v after a cancelled Lock had returned: %v", name, took, err)
		}
		<-time.After(100 * time.Microsecond)
	}
}

// moment returns a random one within the time that a lock and an unlock take.
func (c *canceller) moment() time.Duration { return time.Duration(c.rand.Int64N(int64(c.trip) + 1)) }

// ends unlocks what a Lock has brought before it was cancelled.
func (c *canceller) ends(l *interlock.Lease, err error) {
	c.t.Helper()
	switch {
	case err == nil:
		mustUnlock(c.t, l)
	case !errors.Is(err, context.Canceled):
		c.t.Errorf("the cancelled Lock says %v", err)
	}
}

func uncontended(c *canceller, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(c.moment(), cancel)
	c.ends(c.asks.Lock(ctx, name))
}

// contended cancels a wait around the moment in which it is granted, with another waiter behind it every second time.
func contended(c *canceller, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held := mustLock(c.t, c.holds, name)
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		c.ends(c.asks.Lock(ctx, name))
	}()
	receive(c.t, "the wait to be queued", c.watch.Queued)
	cancelAt, unlockAt := time.After(c.moment()), time.After(c.moment())
	for range 2 {
		select {
		case <-cancelAt:
			cancel()
		case <-unlockAt:
			mustUnlock(c.t, held)
		}
	}
	receive(c.t, "the cancelled Lock to return", ended)
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
