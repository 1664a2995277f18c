package interlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLock_WhileAnotherHolds_WaitsAndIsWoken(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		second := lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		select {
		case got := <-second:
			t.Fatalf("a second owner got in: %v, %v", got.lease, got.err)
		default:
		}
		start := time.Now()
		mustUnlock(t, first)
		got := <-second
		if got.err != nil || time.Since(start) != 0 {
			t.Fatalf("after the unlock: %v, %v later", got.err, time.Since(start))
		}
		if got.lease.Token() <= first.Token() {
			t.Errorf("token %d does not grow over %d", got.lease.Token(), first.Token())
		}
		mustUnlock(t, got.lease)
	})
}

func TestLock_WhoseContextEnds_NamesTheHolderAndMatchesBothErrors(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, &Options{ClientName: "other:1"})
		first := mustLock(t, t.Context(), other, "a")
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		start := time.Now()
		_, err := c.Lock(ctx, "a")
		var held *HeldError
		if !errors.As(err, &held) || !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if held.Client != "other:1" || held.Owner != first.Owner() || held.Token != first.Token() ||
			held.Until.IsZero() {
			t.Errorf("the holder is described as %+v", held)
		}
		if time.Since(start) != second {
			t.Errorf("returned after %v, want at the deadline", time.Since(start))
		}
		mustUnlock(t, first)
		synctest.Wait()
		mustUnlock(t, mustLock(t, t.Context(), other, "a")) // nothing was left queued
	})
}

func TestLock_BehindAnOwnerOfThisProcess_NamesIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		_, err := c.TryLock(t.Context(), "a")
		var held *HeldError
		if !errors.As(err, &held) || held.Owner != first.Owner() || held.Token != first.Token() || held.Cause != nil {
			t.Fatalf("TryLock: %+v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		_, err = c.Lock(ctx, "a")
		if !errors.As(err, &held) || held.Owner != first.Owner() || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock: %+v", err)
		}
		mustUnlock(t, first)
	})
}

func TestLock_WithAContextThatHasEnded_AsksNobody(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, lock := range []func(context.Context, string) (*Lease, error){c.Lock, c.TryLock} {
			if _, err := lock(ctx, "a"); !errors.Is(err, context.Canceled) || errors.Is(err, ErrHeld) {
				t.Errorf("got %v", err)
			}
		}
		if n := h.acquires.Load(); n != 0 {
			t.Errorf("the engine was asked %d times", n)
		}
	})
}

func TestTryLock_OnAFreeMutex_TakesIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l, err := c.TryLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := peer(t, h, nil).TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) ||
			errors.Is(err, ErrUnavailable) {
			t.Errorf("a second TryLock: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestLock_ByManyGoroutinesOfTwoClients_LetsOneInAtATime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		clients := []*Client{c, peer(t, h, nil)}
		var inside gauge
		var tokens sync.Map
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				for range 5 {
					l := mustLock(t, t.Context(), clients[i%2], "a")
					inside.enter()
					if _, seen := tokens.LoadOrStore(l.Token(), i); seen {
						t.Errorf("token %d was given twice", l.Token())
					}
					time.Sleep(time.Millisecond)
					inside.leave()
					mustUnlock(t, l)
				}
			})
		}
		all.Wait()
		if inside.max != 1 {
			t.Errorf("%d owners were inside at once", inside.max)
		}
	})
}

func TestUnlock_Twice_SaysReleased(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		mustUnlock(t, l)
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrReleased) || errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
		if !errors.Is(l.Err(), ErrReleased) || isClosed(l.Lost()) {
			t.Errorf("after the release Err is %v, Lost closed: %v", l.Err(), isClosed(l.Lost()))
		}
		if _, ok := l.Stamp(); ok {
			t.Error("a released hold still has a stamp")
		}
		if err := l.Extend(t.Context(), second); !errors.Is(err, ErrReleased) {
			t.Errorf("Extend: %v", err)
		}
	})
}

func TestUnlock_WithACancelledContext_Releases(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		l, err := peer(t, h, nil).TryLock(t.Context(), "a")
		if err != nil {
			t.Fatalf("the lock is not free: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestDo_RunsInsideTheLockAndReleasesWhateverHappens(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		oops := errors.New("oops")
		err := c.Do(t.Context(), "a", func(ctx context.Context) error {
			AssertHeld(ctx, "a")
			return oops
		})
		if !errors.Is(err, oops) {
			t.Errorf("Do: %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = c.Do(t.Context(), "a", func(context.Context) error { panic("at the disco") })
		}()
		ran, err := c.Mutex("a", nil).TryDo(t.Context(), func(context.Context) error { return nil })
		if !ran || err != nil {
			t.Errorf("TryDo after a panic: %v, %v", ran, err)
		}
	})
}

func TestDo_WhenTheLockIsLostUnderway_CancelsTheWorkAndJoinsTheLoss(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.renew, noRenewals)
		err := c.Do(t.Context(), "a", func(ctx context.Context) error {
			<-ctx.Done()
			wantLost(t, context.Cause(ctx), LostUnconfirmed)
			return nil
		})
		wantLost(t, err, LostUnconfirmed)
	})
}

func TestTryDo_WhenHeldElsewhere_SkipsWithoutAnError(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), peer(t, h, nil), "a")
		ran, err := c.Mutex("a", nil).TryDo(t.Context(), func(context.Context) error {
			t.Error("ran beside the holder")
			return nil
		})
		if ran || err != nil {
			t.Errorf("got %v, %v", ran, err)
		}
		mustUnlock(t, l)
	})
}

func TestLocker_LocksAndPanicsWhenItCannot(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		ctx, cancel := context.WithCancel(t.Context())
		locker := c.Mutex("a", nil).Locker(ctx)
		locker.Lock()
		if _, err := c.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("TryLock beside the Locker: %v", err)
		}
		cancel()
		locker.Unlock()
		for name, f := range map[string]func(){"Unlock": locker.Unlock, "Lock": locker.Lock} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s did not panic", name)
					}
				}()
				f()
			}()
		}
	})
}
