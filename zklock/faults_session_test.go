package zklock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// faultLease is the lease of clients that are to lose it. It is longer than a loaded machine lets a process stand
// still, with the third after which a sign of life is given.
const faultLease = 3 * time.Second

// A holder that is cut off believes for less long than the servers do, and is as good as new when the network is back.
func TestBlackHole_TheHolderIsToldBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	p := servers.NewProxy(t, n.Addr())
	c := openLocks(t, urlOf(root, p.Addr()), leased(faultLease))
	in := locktest.NewInside(t, "lock")
	var l *interlock.Lease
	var w *locking
	for range 3 { // the machine may stand still until the session is over
		l = mustLock(t, c, "lock")
		w = startLock(t, urlOf(root, n.Addr()), nil, "lock")
		p.BlackHole(servers.BothWays)
		if l.Err() == nil {
			break
		}
		p.Pass()
		mustUnlock(t, w.granted("after the session of the holder has ended too early").l)
	}
	in.Enter(l)
	next := w.granted("after the session of the holder has ended")
	in.Enter(next.l)
	gone(t, l)
	var lost *interlock.LostError
	if !errors.As(l.Err(), &lost) || lost.Reason != interlock.LostReason("unconfirmed") {
		t.Errorf("the lease says %v, want that no renewal was confirmed", l.Err())
	}
	p.Pass()
	if err := l.Unlock(bounded(t)); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock of a lost hold says %v", err)
	}
	mustUnlock(t, next.l)
	mustUnlock(t, mustLock(t, c, "lock")) // in the next session
}

// Signs of life keep a hold that nobody uses trusted, also of a short session.
func TestIdleHold_StaysTrusted(t *testing.T) {
	t.Parallel()
	staysTrusted(t, func() error {
		c := openLocks(t, urlOf(freshRoot(), sharedServer(t).Addr()), leased(faultLease))
		defer c.Close()
		l := mustLock(t, c, "lock")
		for end := time.Now().Add(2 * faultLease); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
			if err := l.Err(); err != nil || time.Now().After(l.Deadline()) {
				return fmt.Errorf("the lease ends although all is well: %w, deadline %v", err, time.Until(l.Deadline()))
			}
		}
		return l.Unlock(bounded(t))
	})
}

// Signs of life follow each other more closely than their answers: far from the server the proof of one takes more than
// half of the timeout.
func TestIdleHold_FarFromTheServer_StaysTrusted(t *testing.T) {
	t.Parallel()
	const lease = 2 * faultLease
	staysTrusted(t, func() error {
		p := servers.NewProxy(t, sharedServer(t).Addr())
		c := openLocks(t, urlOf(freshRoot(), p.Addr()), leased(lease))
		defer c.Close()
		l := mustLock(t, c, "lock")
		p.Delay(servers.BothWays, lease*30/200)
		select {
		case <-l.Lost():
			return fmt.Errorf("the lease ends although all is well: %w", l.Err())
		case <-time.After(2 * lease):
		}
		p.Delay(servers.BothWays, 0)
		return l.Unlock(bounded(t))
	})
}

// A connection that breaks is not a session that ends: nothing is lost.
func TestBrokenConnections_LoseNeitherHoldsNorPlaces(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	holding, waitingFor := servers.NewProxy(t, n.Addr()), servers.NewProxy(t, n.Addr())
	c := openLocks(t, urlOf(root, holding.Addr()), leased(10*time.Second))
	l := mustLock(t, c, "lock")
	first := startLock(t, urlOf(root, waitingFor.Addr()), leased(10*time.Second), "lock")
	second := startLock(t, urlOf(root, n.Addr()), nil, "lock")
	for range 4 {
		_, before := waitingFor.Connections()
		holding.Reset()
		waitingFor.Reset()
		soon(t, "the next connection", func() bool { _, all := waitingFor.Connections(); return all > before })
		<-time.After(10 * time.Millisecond) // so that some are cut while they are young, and others later
	}
	if err := l.Err(); err != nil {
		t.Fatalf("the lease was lost with a connection: %v", err)
	}
	first.stillWaits("after its connection was cut")
	mustUnlock(t, l)
	next := first.granted("the first who waited, although its connection was cut")
	second.stillWaits("behind the first")
	mustUnlock(t, next.l)
	mustUnlock(t, second.granted("the second").l)
}

// An event that a broken connection has swallowed is made up for.
func TestReleaseDuringADisconnection_IsNoticedAfterwards(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	c := openLocks(t, urlOf(root, n.Addr()), nil)
	for range 5 {
		p := servers.NewProxy(t, n.Addr())
		l := mustLock(t, c, "lock")
		w := startLock(t, urlOf(root, p.Addr()), leased(20*time.Second), "lock")
		p.BlackHole(servers.BothWays)
		mustUnlock(t, l)
		p.Reset()
		p.Pass()
		mustUnlock(t, w.granted("what was released while it was cut off").l)
	}
}

// A waiter whose session ends begins again in the next one.
func TestExpiredWaiter_WaitsOnInTheNextSession(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	p := servers.NewProxy(t, n.Addr())
	l := mustLock(t, openLocks(t, urlOf(root, n.Addr()), nil), "lock")
	w := startLock(t, urlOf(root, p.Addr()), leased(500*time.Millisecond), "lock")
	p.BlackHole(servers.BothWays)
	soon(t, "the servers to end the waiter's session", func() bool { return len(a.nodes(root+"/mutex/lock")) == 1 })
	p.Pass()
	soon(t, "the waiter to be queued again", func() bool { return len(a.nodes(root+"/mutex/lock")) == 2 })
	w.stillWaits("in its next session")
	mustUnlock(t, l)
	mustUnlock(t, w.granted("after the holder has left").l)
}

// Expired sessions follow one another; the client makes a new one each time.
func TestManyExpiries_LeaveTheClientUsable(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	p := servers.NewProxy(t, n.Addr())
	a := newAdmin(t, n.Addr())
	c := openLocks(t, urlOf(root, p.Addr()), leased(time.Second))
	w := locktest.NewInside(t, "lock")
	for range 3 {
		l := mustLock(t, c, "lock")
		w.Enter(l)
		p.BlackHole(servers.BothWays)
		gone(t, l)
		soon(t, "the servers to end the session", func() bool { return len(a.nodes(root+"/sessions")) == 0 })
		p.Pass()
	}
	soon(t, "the client to be inside in the end", func() bool {
		l, before := mustLock(t, c, "lock"), w.Entries()
		w.Enter(l)
		return l.Unlock(bounded(t)) == nil && w.Entries() > before
	})
}

// A server that hangs for longer than the lease frees what it cannot answer for, and so does the client.
func TestHungServer_LongerThanTheLease(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	c := openLocks(t, urlOf(root, n.Addr()), leased(faultLease))
	l := mustLock(t, c, "lock")
	w := locktest.NewInside(t, "lock")
	w.Enter(l)
	other := startLock(t, urlOf(root, n.Addr()), leased(faultLease), "lock")
	n.Stop()
	defer n.Cont()
	over := alarm(faultLease)
	told := gone(t, l)
	if late := told.Sub(<-over); late > 250*time.Millisecond {
		t.Errorf("the holder was told %v after the end of its lease", late)
	}
	<-time.After(faultLease) // so that the servers see the end of all sessions when they go on
	n.Cont()
	if err := l.Unlock(bounded(t)); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock says %v", err)
	}
	got := other.granted("after the server goes on")
	w.Enter(got.l)
	mustUnlock(t, got.l)
	again := mustLock(t, c, "lock")
	w.Enter(again)
	mustUnlock(t, again)
}

// Nobody waits for a server that hangs for longer than his context.
func TestHungServer_CallsReturnWithTheirContext(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	c := openLocks(t, urlOf(root, n.Addr()), leased(20*time.Second))
	var held []*interlock.Lease
	for i := range hungTries {
		held = append(held, mustLock(t, c, fmt.Sprint("held ", i)))
	}
	free := []string{"one", "two"}
	calls := map[string]func(ctx context.Context) error{
		"Lock":    func(ctx context.Context) error { return errOf(c.Lock(ctx, "one")) },
		"TryLock": func(ctx context.Context) error { return errOf(c.TryLock(ctx, "two")) },
		"Unlock": func(ctx context.Context) error {
			l := held[0]
			held, free = held[1:], append(free, l.Name())
			return l.Unlock(ctx)
		},
		"Break": func(ctx context.Context) error { return c.Break(ctx, "mutex", "three", 1) },
		"Locks": func(ctx context.Context) error {
			for _, err := range c.List(ctx, "") {
				return err
			}
			return nil
		},
	}
	n.Stop()
	defer n.Cont()
	for name, call := range calls {
		promptly(t, name, call)
	}
	n.Cont()
	for _, name := range free { // what became of the calls is settled in the background
		soon(t, "the lock to be free", func() bool {
			l, err := c.TryLock(bounded(t), name)
			if err == nil {
				mustUnlock(t, l)
			}
			return err == nil
		})
	}
}

// hungTries is how often it is measured whether a call returns with its context until it does: the machine may be busy.
const hungTries = 5

// promptly fails unless call returns with its context at least once.
func promptly(t *testing.T, what string, call func(ctx context.Context) error) {
	t.Helper()
	const limit = 100 * time.Millisecond
	var late time.Duration
	for range hungTries {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		begin := time.Now()
		err := call(ctx)
		late = time.Since(begin) - limit
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if late <= 50*time.Millisecond {
			return
		}
	}
	t.Errorf("%s returned %v after its context had ended", what, late)
}

func errOf(_ *interlock.Lease, err error) error { return err }
