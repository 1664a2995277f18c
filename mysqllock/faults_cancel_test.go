package mysqllock

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
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// cancels is how many acquisitions are cancelled, and cancelBound how soon the lock must be free then: as a rule,
	// since the machine may stand still, but never is it the session's end that frees it.
	cancels     = 40
	cancelBound = time.Second
)

func TestCancel_AtAnyMoment_LeavesTheLockFree(t *testing.T) {
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

	asks, holds, tries *interlock.Client
}

func cancelled(t *testing.T, delay time.Duration, once func(c *canceller, name string)) {
	n := sharedServer(t)
	p := servers.NewProxy(t, n.Addr())
	c := &canceller{t: t, rand: newRand(t), watch: locktest.NewNews()}
	c.asks = openLocks(t, urlOf(p.Addr()), &interlock.Options{Observer: c.watch.Observer()})
	c.holds, c.tries = openLocks(t, urlOf(n.Addr()), nil), openLocks(t, urlOf(n.Addr()), nil)
	p.Delay(servers.BothWays, delay)
	begin := time.Now()
	mustUnlock(t, mustLock(t, c.asks, "once")) // so that the statements are prepared
	c.trip = min(time.Since(begin), 30*time.Millisecond)
	var free []time.Duration
	for i := range cancels {
		name := fmt.Sprint(t.Name(), i)
		once(c, name)
		free = append(free, c.freeAfter(name))
	}
	slices.Sort(free)
	t.Logf("free after: median %v, worst %v", free[cancels/2], free[cancels-1])
	if free[cancels/2] > cancelBound {
		t.Errorf("half of the locks were free only %v after a cancelled Lock had returned", free[cancels/2])
	}
	a := newAdmin(t, n)
	soon(t, "no wait to be left in the server", func() bool { return a.waiting() == 0 })
}

// freeAfter returns how long it took until another client's try succeeded.
func (c *canceller) freeAfter(name string) time.Duration {
	c.t.Helper()
	begin := time.Now()
	for {
		l, err := c.tries.TryLock(patient(c.t), name)
		took := time.Since(begin)
		if err == nil {
			mustUnlock(c.t, l)
			return took
		}
		if !errors.Is(err, interlock.ErrHeld) || took > faultsPatience { // of a lease of 30 s
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

// contended cancels a wait around the moment in which it is granted.
func contended(c *canceller, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held := mustLock(c.t, c.holds, name)
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		c.ends(c.asks.Lock(ctx, name))
	}()
	receive(c.t, "the wait to begin", c.watch.Queued)
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

// A cancelled wait returns at once, and the server forgets it although the holder stays.
func TestCancel_ReturnsAtOnce_AndNothingStaysQueued(t *testing.T) {
	n := sharedServer(t)
	a, watch := newAdmin(t, n), locktest.NewNews()
	holds := openLocks(t, urlOf(n.Addr()), nil)
	asks := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: watch.Observer()})
	held := mustLock(t, holds, "kept")
	var times []time.Duration
	for range 30 {
		ctx, cancel := context.WithCancel(context.Background())
		returned := make(chan error, 1)
		go func() { // ends with ctx
			_, err := asks.Lock(ctx, "kept")
			returned <- err
		}()
		receive(t, "the wait to begin", watch.Queued)
		soon(t, "the wait to be in the server", func() bool { return a.waiting() == 1 })
		begin := time.Now()
		cancel()
		err := receive(t, "Lock to return", returned)
		times = append(times, time.Since(begin))
		var told *interlock.HeldError
		if !errors.As(err, &told) || !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled wait says %v", err)
		}
		soon(t, "the wait to be gone from the server", func() bool { return a.waiting() == 0 })
	}
	slices.Sort(times)
	t.Logf("returned after: median %v, worst %v", times[len(times)/2], times[len(times)-1])
	if times[len(times)/2] > 200*time.Millisecond {
		t.Errorf("half of the cancelled waits took longer than %v", times[len(times)/2])
	}
	mustUnlock(t, held)
}
