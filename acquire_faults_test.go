package interlock

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// One test for each fault that a review of the acquisition path found and reproduced. docs/track-record/core.md lists
// them.

func TestAnOwner_NeverWaitsForItself(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		// Another goroutine of the owner had looked before l was granted, and found nothing.
		w := shell.NewWaiter(&c.Mutex("a", nil).lock, l.hold().Owner, c.in().NewCall())
		c.in().Lock()
		beside, err := c.in().Join(t.Context(), w)
		if err != nil || beside.Token() != l.Token() {
			t.Fatalf("join: %v, %v", beside, err)
		}
		tried, err := shell.TryAlongside(&c.Mutex("a", nil).lock, l.hold().Owner, c.in().NewCall(), ErrHeld)
		if err != nil {
			t.Fatalf("try: %v", err)
		}
		for _, l := range []*Lease{leaseOf(tried), leaseOf(beside), l} {
			mustUnlock(t, l)
		}
	})
}

// local is the memory engine with Traits.Local set, so that the core makes its tries in the caller's goroutine.
type local struct{ *hooks }

func (l *local) Traits() driver.Traits { return l.Driver.Traits() }

func TestATryThatIsGrantedTooLate_IsMadeAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, &local{h}, nil)
		defer c.Close()
		var grants atomic.Int64
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			g, err := h.Driver.Acquire(ctx, r)
			if grants.Add(1) == 1 { // this process stood still for longer than the lease
				g.Sent = g.Sent.Add(-r.Lease)
			}
			return g, err
		})
		l, err := c.TryLock(t.Context(), "a")
		if err == nil { // it may also have met what the first try has not given back yet
			mustUnlock(t, l)
		} else if !errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
		if n := grants.Load(); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
	})
}

// asking is a slog handler that uses the lease it logs about.
type asking struct {
	slog.Handler
	lease atomic.Pointer[Lease]
	asked atomic.Int64
}

func (a *asking) Enabled(context.Context, slog.Level) bool { return true }

func (a *asking) Handle(context.Context, slog.Record) error {
	if l := a.lease.Load(); l != nil {
		_ = l.Err()
		a.asked.Add(1)
	}
	return nil
}

func TestLogger_MayUseTheLease(t *testing.T) {
	var a asking
	bubble(t, &Options{Logger: slog.New(&a)}, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		a.lease.Store(l)
		on(h, &h.renew, noRenewals)
		<-l.Lost()
		synctest.Wait()
		if a.asked.Load() < 2 {
			t.Errorf("logged %d times, want failed renewals and a loss", a.asked.Load())
		}
	})
}

func TestObserver_ThatIsSlow_DelaysNobodyElse(t *testing.T) {
	slow := &Observer{Lost: func(Event) { time.Sleep(40 * second) }}
	bubble(t, &Options{Observer: slow}, func(t *testing.T, c *Client, _ *hooks) {
		other := mustLock(t, t.Context(), c, "other")
		var work []context.Context
		for _, name := range []string{"a", "b"} {
			l, err := c.Mutex(name, &LockOptions{MaxHold: second}).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			work = append(work, l.Context(t.Context()))
		}
		start := time.Now()
		for _, ctx := range work {
			<-ctx.Done()
		}
		if got := time.Since(start); got != second {
			t.Errorf("told after %v", got)
		}
		time.Sleep(60 * second)
		if err := other.Err(); err != nil {
			t.Errorf("an unrelated hold: %v", err)
		}
		mustUnlock(t, other)
	})
}

func TestWaits_ThatHadBegun_SurviveErrors(t *testing.T) {
	reset := errors.New("connection reset")
	t.Run("OfANamedOwner", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
			first := mustLock(t, t.Context(), peer(t, h, nil), "a")
			on(h, &h.acquire, func(_ context.Context, r *driver.Request) (driver.Grant, error) {
				r.Waiting(&HeldError{Kind: r.Kind, Name: r.Name})
				on(h, &h.acquire, h.Driver.Acquire)
				return driver.Grant{}, reset
			})
			wait := lockLater(WithOwner(t.Context(), "me"), c, "a")
			time.Sleep(second)
			mustUnlock(t, first)
			got := <-wait
			if got.err != nil {
				t.Fatal(got.err)
			}
			mustUnlock(t, got.lease)
		})
	})
	t.Run("BehindAHolderOfThisProcess", func(t *testing.T) {
		bubble(t, &Options{LocalHandoffs: -1}, func(t *testing.T, c *Client, h *hooks) {
			first := mustLock(t, t.Context(), c, "a")
			wait := lockLater(t.Context(), c, "a")
			synctest.Wait()
			on(h, &h.requeue, func(context.Context, *driver.Release, *driver.Request) (driver.Grant, error) {
				return driver.Grant{}, reset
			})
			mustUnlock(t, first)
			got := <-wait
			if got.err != nil {
				t.Fatal(got.err)
			}
			mustUnlock(t, got.lease)
		})
	})
}

func TestLock_WhoseContextEndsDuringTheHandBack_SaysHeld(t *testing.T) {
	bubble(t, &Options{LocalHandoffs: -1}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		ctx, cancel := context.WithCancel(t.Context())
		wait := lockLater(ctx, c, "a")
		synctest.Wait()
		on(h, &h.requeue, func(ctx context.Context, _ *driver.Release, _ *driver.Request) (driver.Grant, error) {
			<-ctx.Done() // under way
			return driver.Grant{}, ctx.Err()
		})
		mustUnlock(t, first)
		synctest.Wait()
		cancel()
		if got := <-wait; !errors.Is(got.err, ErrHeld) || errors.Is(got.err, ErrUnavailable) {
			t.Errorf("got %v", got.err)
		}
	})
}

func TestAcquire_RefusedForEver_IsNotAskedWithoutAPause(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, ErrLost
		})
		for _, ctx := range []context.Context{t.Context(), WithOwner(t.Context(), "me")} {
			before := h.acquires.Load()
			ctx, cancel := context.WithTimeout(ctx, 10*second)
			if _, err := c.Lock(ctx, "a"); !errors.Is(err, ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			cancel()
			if n := h.acquires.Load() - before; n < 2 || n > 110 {
				t.Errorf("asked %d times in 10 s", n)
			}
		}
	})
}

func TestRequeue_WhoseRequestIsRefused_LeavesNoOrphan(t *testing.T) {
	bubble(t, &Options{LocalHandoffs: -1}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		wait := lockLater(t.Context(), c, "a")
		synctest.Wait()
		on(h, &h.requeue, func(_ context.Context, _ *driver.Release, r *driver.Request) (driver.Grant, error) {
			go func() { _, _ = h.Driver.Acquire(context.Background(), r) }() // queued all the same
			synctest.Wait()
			return driver.Grant{}, ErrLost
		})
		start := time.Now()
		mustUnlock(t, first)
		got := <-wait
		if got.err != nil || time.Since(start) > second {
			t.Fatalf("%v, after %v", got.err, time.Since(start))
		}
		mustUnlock(t, got.lease)
	})
}

func TestAGrant_ThatEndedBeforeItWasTakenIn_IsNotReturned(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			on(h, &h.acquire, h.Driver.Acquire)
			g, err := h.Driver.Acquire(ctx, r)
			time.Sleep(40 * second) // this process stood still
			return g, err
		})
		l := mustLock(t, t.Context(), c, "a")
		if err := l.Err(); err != nil {
			t.Errorf("Lock returned a hold that %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestAGrantThatWasSuperseded_PassesOnNoMore(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		message := make(chan struct{}) // about the break; it is slow
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			if r.Try {
				lost := r.Lost
				r.Lost = func(reason LostReason, cause error) { <-message; lost(reason, cause) }
				defer time.Sleep(second)
			}
			return h.Driver.Acquire(ctx, r)
		})
		try := make(chan *Lease, 1)
		go func() {
			l, _ := c.TryLock(t.Context(), "a")
			try <- l
		}()
		synctest.Wait()
		first := lockLater(t.Context(), c, "a")
		synctest.Wait()
		old := <-try
		second := lockLater(t.Context(), c, "a")
		synctest.Wait()
		go func() { _ = c.Break(t.Context(), KindMutex, "a", old.Token()) }()
		got := <-first // the engine has given the lock to the next
		_ = old.Unlock(t.Context())
		synctest.Wait()
		select {
		case other := <-second:
			t.Errorf("tokens %d and %d are inside", got.lease.Token(), other.lease.Token())
		default:
		}
		close(message)
		mustUnlock(t, got.lease)
		mustUnlock(t, (<-second).lease)
	})
}

func TestNoRenew_OnAShortGrant_IsClaimedAndLastsItsLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			g, err := h.Driver.Acquire(ctx, r)
			g.Lease = 2 * second // as a pushed claim
			return g, err
		})
		start := time.Now()
		l, err := c.Mutex("a", &LockOptions{Lease: 10 * second, NoRenew: true}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-l.Lost()
		wantLost(t, l.Err(), LostExpired)
		if got := time.Since(start); got < 9*second || h.renewals.Load() != 1 {
			t.Errorf("ended after %v and %d renewals", got, h.renewals.Load())
		}
	})
}

func TestNoRenew_OnASessionEngine_OutlastsTheSessionsTimeout(t *testing.T) {
	sessionBubble(t, func(t *testing.T, c *Client, s *sessions) {
		start := time.Now()
		l, err := c.Mutex("a", &LockOptions{Lease: 60 * second, NoRenew: true}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 11 {
			time.Sleep(5 * second)
			s.pinged.ping()
		}
		<-l.Lost()
		if got := time.Since(start); got != 60*second {
			t.Errorf("ended after %v", got)
		}
	})
}

func TestRelease_WhereNothingEndsByItself_GoesOn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, &forever{h}, nil)
		defer c.Close()
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.release, func(context.Context, *driver.Release) error { return errors.New("connection refused") })
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		if err := l.Unlock(ctx); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		on(h, &h.release, h.Driver.Release)
		time.Sleep(10 * second)
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func TestExtend_OnAHungEngine_EndsWithTheHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, noRenewals)
		start := time.Now()
		err := l.Extend(t.Context(), 24*time.Hour)
		if got := time.Since(start); err == nil || got > 30*second {
			t.Errorf("%v after %v", err, got)
		}
	})
}

func TestLocalPass_OfAnExtendedHold_DoesNotHandOnItsLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		if err := l.Extend(t.Context(), 24*time.Hour); err != nil {
			t.Fatal(err)
		}
		wait := lockLater(t.Context(), c, "a")
		synctest.Wait()
		mustUnlock(t, l)
		got := <-wait
		if left := time.Until(got.lease.Deadline()); left > 30*second {
			t.Errorf("a crash would block the others for %v", left)
		}
		mustUnlock(t, got.lease)
	})
}

func TestLocker_WithAnOwnersContext_StillExcludes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		job := mustLock(t, t.Context(), c, "job")
		ctx := job.Context(t.Context())
		first, second := c.Mutex("a", nil).Locker(ctx), c.Mutex("a", nil).Locker(ctx)
		first.Lock()
		inside := make(chan struct{})
		go func() {
			second.Lock()
			close(inside)
		}()
		synctest.Wait()
		if isClosed(inside) {
			t.Error("two are inside")
		}
		first.Unlock()
		<-inside
		second.Unlock()
		mustUnlock(t, job)
	})
}

func TestTryDo_WhenItIsNotKnownWhoHolds_IsAnError(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(_ context.Context, r *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, errors.Join(&HeldError{Kind: r.Kind, Name: r.Name}, ErrUnavailable)
		})
		ran, err := c.Mutex("a", nil).TryDo(t.Context(), nil)
		if ran || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrHeld) {
			t.Errorf("got %v, %v", ran, err)
		}
	})
}
