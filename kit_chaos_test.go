package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The goroutines of histories_chaos_test.go: each makes random calls, and checks that no trusted hold excludes its own.

// eternal makes a driver with leases one whose holds last as long as the process.
type eternal struct {
	driver.Driver
	driver.Converter
	driver.Requeuer
}

func (e eternal) Traits() driver.Traits {
	t := e.Driver.Traits()
	t.Lifetime = driver.Process
	return t
}

func (e eternal) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return lasting(r, func() (driver.Grant, error) { return e.Driver.Acquire(ctx, r) })
}

func (e eternal) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	return lasting(r, func() (driver.Grant, error) { return e.Converter.Convert(ctx, beside, r) })
}

func (e eternal) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	return lasting(r, func() (driver.Grant, error) { return e.Requeuer.Requeue(ctx, give, r) })
}

func lasting(r *driver.Request, ask func() (driver.Grant, error)) (driver.Grant, error) {
	r.Lease = 1000 * time.Hour
	g, err := ask()
	g.Sent, g.Lease = time.Time{}, 0
	return g, err
}

// scene records which leases of one lock say that they hold it.
type scene struct {
	mu     sync.Mutex // guards inside
	inside map[*Lease]bool
}

// enter notes that l is inside; alone says that nobody else may be. It returns a trusted hold that excludes l, or nil.
func (s *scene) enter(l *Lease, alone bool) (met *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, others := range s.inside {
		if (alone || others) && other.hold().Owner != l.hold().Owner && other.Err() == nil && l.Err() == nil {
			met = other
		}
	}
	if s.inside == nil {
		s.inside = make(map[*Lease]bool)
	}
	s.inside[l] = alone
	return met
}

func (s *scene) leave(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inside, l)
}

// wild is a goroutine that makes random calls.
type wild struct {
	t      *testing.T
	c      *Client
	r      *rand.Rand
	scenes map[string]*scene
}

func (w *wild) chance(n int) bool { return w.r.IntN(n) == 0 }

func (w *wild) pause(most time.Duration) { time.Sleep(time.Duration(w.r.Int64N(int64(most)))) } // virtual

// options returns random options of a lock.
func (w *wild) options() *LockOptions {
	o := &LockOptions{NoRenew: w.chance(5)}
	leases := w.c.in().Traits.Lifetime == driver.Leases
	if leases && w.chance(5) {
		o.Lease = time.Duration(1+w.r.IntN(9)) * second
	}
	if w.chance(6) {
		o.MaxHold = time.Duration(1+w.r.IntN(5)) * second
	}
	if w.chance(6) {
		o.MinHold = time.Duration(1+w.r.IntN(4)) * second
	}
	if leases && w.chance(8) {
		o.LockDelay = time.Duration(1+w.r.IntN(4)) * second
	}
	return o
}

// in makes a call with a context that ends at a random instant, and fails if the call goes on after that.
func (w *wild) in(ctx context.Context, what string, f func(ctx context.Context) error) error {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.r.IntN(15_000))*time.Millisecond)
	defer cancel()
	end, _ := ctx.Deadline()
	err := f(ctx)
	if late := time.Since(end); late > 50*time.Millisecond {
		w.t.Errorf("%s returned %v after its context had ended: %v", what, late, err)
	}
	return err
}

// act takes a lock, works under it and gives it back.
func (w *wild) act() {
	ctx := w.t.Context()
	if w.chance(5) {
		ctx = WithOwner(ctx, fmt.Sprint("owner-", w.r.IntN(3)))
	}
	w.pause(second)
	name := []string{"a", "b"}[w.r.IntN(2)]
	kind, lock, alone := w.pick(name)
	var l *Lease
	err := w.in(ctx, "Lock", func(ctx context.Context) (err error) { l, err = lock(ctx); return err })
	if err != nil {
		for _, may := range []error{ErrHeld, ErrUnavailable, context.DeadlineExceeded, ErrDeadlock, ErrClosed} {
			if errors.Is(err, may) {
				return
			}
		}
		if _, named := OwnerFrom(ctx); named && errors.Is(err, ErrLost) {
			return // by another goroutine of this owner, which has not unlocked it yet
		}
		w.t.Errorf("%s %q: %v", kind, name, err)
		return
	}
	s := w.scenes[string(kind)+name]
	w.meets(s, l, alone)
	defer func() {
		s.leave(l)
		if w.chance(8) {
			_ = l.Abandon()
		}
		err := w.in(w.t.Context(), "Unlock", l.Unlock)
		if err != nil && !errors.Is(err, ErrLost) && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrReleased) &&
			!errors.Is(err, ErrClosed) {
			w.t.Errorf("Unlock: %v", err)
		}
		if l.Err() == nil {
			w.t.Error("a hold goes on after its Unlock")
		}
	}()
	w.work(l, lock, s, alone)
}

// pick returns how to take a lock of a random kind, and whether nobody else may be inside then.
func (w *wild) pick(name string) (kind Kind, lock func(ctx context.Context) (*Lease, error), alone bool) {
	o := w.options()
	switch rw := w.c.RWMutex(name, o); w.r.IntN(8) {
	case 0, 1:
		return KindMutex, w.c.Mutex(name, o).Lock, true
	case 2:
		return KindMutex, w.c.Mutex(name, o).TryLock, true
	case 3:
		return KindRWMutex, rw.Lock, true
	case 4:
		return KindRWMutex, rw.RLock, false
	case 5:
		return KindRWMutex, rw.UpgradeableRLock, false
	case 6:
		n := 1 + w.r.IntN(3)
		acquire := func(ctx context.Context) (*Lease, error) { return w.c.Semaphore(name, 3, o).Acquire(ctx, n) }
		return KindSemaphore, acquire, false
	default:
		e := w.c.Election(name, o)
		return KindElection, func(ctx context.Context) (*Lease, error) { return e.Campaign(ctx, "me") }, true
	}
}

func (w *wild) meets(s *scene, l *Lease, alone bool) {
	w.t.Helper()
	if other := s.enter(l, alone); other != nil {
		w.t.Errorf("%s %q: tokens %d and %d are both inside", l.Kind(), l.Name(), other.Token(), l.Token())
	}
}

// work makes up to three random calls under l: it extends, enters again, upgrades, downgrades, marks it as pending, or
// pauses.
func (w *wild) work(l *Lease, lock func(ctx context.Context) (*Lease, error), s *scene, alone bool) {
	ctx := w.t.Context()
	for range w.r.IntN(4) {
		switch w.r.IntN(6) {
		case 0:
			_ = w.in(ctx, "Extend", func(ctx context.Context) error {
				return l.Extend(ctx, time.Duration(1+w.r.IntN(20))*second)
			})
		case 1:
			w.again(l, lock)
		case 2:
			if err := w.in(ctx, "Upgrade", l.Upgrade); err == nil {
				alone = true
				w.meets(s, l, alone)
			}
		case 3:
			if l.Kind() == KindRWMutex && alone {
				alone = false
				w.meets(s, l, alone)
				if err := w.in(ctx, "Downgrade", l.Downgrade); err != nil {
					alone = true // the outcome may be unknown, so it still counts as a writer
				}
			}
		case 4:
			if over, err := l.Pending(); err == nil {
				defer over()
			}
		case 5:
			w.pause(8 * second)
		}
	}
}

// again enters l's lock once more.
func (w *wild) again(l *Lease, lock func(ctx context.Context) (*Lease, error)) {
	if l.Kind() == KindSemaphore { // permits never re-enter
		return
	}
	var inner *Lease
	err := w.in(l.Context(w.t.Context()), "Lock again", func(ctx context.Context) (err error) {
		inner, err = lock(ctx)
		return err
	})
	if err != nil {
		return
	}
	w.pause(second)
	if w.chance(6) {
		_ = inner.Abandon()
	}
	if err := w.in(w.t.Context(), "Unlock", inner.Unlock); errors.Is(err, driver.ErrNotHeld) {
		w.t.Errorf("Unlock again: %v", err)
	}
}
