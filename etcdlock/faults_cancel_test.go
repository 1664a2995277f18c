package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

const (
	// hungTime is how long callers are ready to wait, hungSlack by how much that may be exceeded, and hungTries how
	// often it is measured until a measurement is good: the machine may be busy.
	hungTime, hungSlack, hungTries = 200 * time.Millisecond, 50 * time.Millisecond, 5
)

// prompt fails unless call returns with its context, whatever it says.
func prompt(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	var late time.Duration
	for range hungTries {
		ctx, cancel := context.WithTimeout(context.Background(), hungTime)
		begin := time.Now()
		err := call(ctx)
		late = time.Since(begin) - hungTime
		cancel()
		if err == nil {
			t.Errorf("%s: no error, although the server hangs", what)
			return
		}
		if late <= hungSlack {
			return
		}
	}
	t.Errorf("%s: returned %v after its context ended", what, late)
}

func TestHungServer_CallsReturnWithTheirContexts_AndCloseIsBounded(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	const closes = 100 * time.Millisecond
	a := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm, CloseTimeout: closes})
	held := make([]*interlock.Lease, hungTries)
	for i := range held {
		held[i] = mustLock(t, a, fmt.Sprint("held ", i))
	}
	s.Stop()
	prompt(t, "Lock", func(ctx context.Context) error { _, err := a.Lock(ctx, "lock"); return err })
	prompt(t, "TryLock", func(ctx context.Context) error { _, err := a.TryLock(ctx, "tried"); return err })
	prompt(t, "Break", func(ctx context.Context) error { return a.Break(ctx, interlock.Kind("mutex"), "lock", 1) })
	prompt(t, "Locks", func(ctx context.Context) error {
		for _, err := range a.List(ctx, "") {
			return err
		}
		return nil
	})
	i := 0
	prompt(t, "Unlock", func(ctx context.Context) error { i++; return held[i-1].Unlock(ctx) })
	over := alarm(closes)
	_ = a.Close() // that not everything was given back is what it says
	closed := time.Now()
	if late := closed.Sub(<-over); late > 2*time.Second {
		t.Errorf("Close took %v longer than it was given, with a server that hangs", late)
	}
	s.Cont()
}

// At whatever moment a Lock is cancelled, the lock is free soon.
func TestCancel_AtAnyMoment_LeavesTheLockFree(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	watch := newNews()
	asks := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm, Observer: watch.Observer()})
	others := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm})
	var free []time.Duration
	for i := range 80 {
		name := fmt.Sprint("lock ", i)
		contended := i%2 == 0
		ctx, cancel := context.WithCancel(context.Background())
		moment := time.Duration(random.Int64N(int64(3 * time.Millisecond)))
		var held *interlock.Lease
		if contended {
			held = mustLock(t, others, name)
		}
		returned := make(chan error, 1)
		go func() { // ends with ctx
			l, err := asks.Lock(ctx, name)
			if err == nil {
				err = l.Unlock(context.WithoutCancel(ctx))
			}
			returned <- err
		}()
		if contended {
			receive(t, "the wait to be queued", watch.Queued)
			time.AfterFunc(moment, cancel)
			<-time.After(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
			mustUnlock(t, held)
		} else {
			time.AfterFunc(moment, cancel)
		}
		if err := receive(t, "the cancelled Lock to return", returned); err != nil &&
			!errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled Lock says %v", err)
		}
		begin := time.Now()
		mustUnlock(t, mustLock(t, others, name))
		free = append(free, time.Since(begin))
		cancel()
	}
	slices.Sort(free)
	median, worst := free[len(free)/2], free[len(free)-1]
	t.Logf("free after: median %v, worst %v", median, worst)
	// single ones are late when the machine stands still, but none is freed by its session's end
	if median > time.Second || worst > calm/2 {
		t.Errorf("a lock was free only %v after a cancelled Lock had returned, half of them %v", worst, median)
	}
	noneLeft(t, s)
}

func TestClose_WithWaiters_TellsThemAndFreesWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := servers.EtcdServer(t, nil)
	watch := newNews()
	a := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm, Observer: watch.Observer()})
	b := openLocks(t, etcdURL(s.Addr()), &interlock.Options{Lease: calm, Observer: watch.Observer()})
	held := mustLock(t, a, "of a")
	mustLock(t, b, "of b")
	in := locking(t, a, "of b")
	waiting := make(chan error, 1)
	go func() { // ends with Close
		_, err := b.Lock(context.Background(), "of a")
		waiting <- err
	}()
	receive(t, "one to be queued", watch.Queued)
	receive(t, "the other to be queued", watch.Queued)
	begin := time.Now()
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begin); took > calm/2 { // the session's end is not what it waits for
		t.Errorf("Close took %v", took)
	}
	if err := receive(t, "the waiter to be told", waiting); !errors.Is(err, interlock.ErrClosed) {
		t.Errorf("the waiter of the closed client is told %v", err)
	}
	mustUnlock(t, receive(t, "who waits for what the closed client held", in))
	mustUnlock(t, held)
	noneLeft(t, s)
}
