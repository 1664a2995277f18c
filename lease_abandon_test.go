package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// heldFor returns how long it takes until other gets the lock "a".
func heldFor(t *testing.T, other *Client) time.Duration {
	t.Helper()
	start := time.Now()
	mustUnlock(t, mustLock(t, t.Context(), other, "a"))
	return time.Since(start)
}

func TestAbandon_LeavesTheLockToRunOut(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := mustLock(t, t.Context(), c, "a")
		work := l.Context(t.Context())
		time.Sleep(12 * second) // renewed after 10 s
		if err := l.Abandon(); err != nil {
			t.Fatal(err)
		}
		if !errors.Is(l.Err(), ErrReleased) || !errors.Is(context.Cause(work), ErrReleased) || isClosed(l.Lost()) {
			t.Errorf("the hold says %v, its work %v", l.Err(), context.Cause(work))
		}
		if _, ok := l.Stamp(); ok {
			t.Error("it still has a stamp")
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("Unlock: %v", err)
		}
		if err := l.Abandon(); !errors.Is(err, ErrReleased) {
			t.Errorf("Abandon again: %v", err)
		}
		if n := h.releases.Load(); n != 0 {
			t.Errorf("released %d times", n)
		}
		renewals := h.renewals.Load()
		if got := heldFor(t, other); got < 27*second || got > 29*second {
			t.Errorf("another got it after %v, want the rest of the lease", got)
		}
		if n := h.renewals.Load() - renewals; n != 0 {
			t.Errorf("renewed %d times", n)
		}
	})
}

func TestAbandon_SendsThoseWhoWaitHereToTheEngine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		start := time.Now()
		wait := lockLater(t.Context(), c, "a")
		synctest.Wait()
		if err := l.Abandon(); err != nil {
			t.Fatal(err)
		}
		got := <-wait
		if waited := time.Since(start); got.err != nil || waited < 29*second || waited > 31*second {
			t.Fatalf("%v after %v", got.err, waited)
		}
		mustUnlock(t, got.lease)
	})
}

func TestAbandon_WithFurtherHolds_LetsThemGoOn_AndThenTheLockRunsOut(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		outer := mustLock(t, t.Context(), c, "a")
		inner := mustLock(t, outer.Context(t.Context()), c, "a")
		if err := inner.Abandon(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if outer.Err() != nil || !errors.Is(inner.Err(), ErrReleased) {
			t.Fatalf("outer %v, inner %v", outer.Err(), inner.Err())
		}
		mustUnlock(t, outer)
		if got := heldFor(t, other); got < 19*second || got > 31*second {
			t.Errorf("another got it after %v, want the rest of the lease", got)
		}
	})
}

func TestAbandon_AfterALoss_SaysSo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, noRenewals)
		<-l.Lost()
		if err := l.Abandon(); !errors.Is(err, ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAbandon_WhereNothingEndsByItself_GivesItBackAfterALease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, &forever{h}, nil), peer(t, h, nil)
		defer c.Close()
		l := mustLock(t, t.Context(), c, "a")
		time.Sleep(12 * second)
		if err := l.Abandon(); err != nil {
			t.Fatal(err)
		}
		if got := heldFor(t, other); got < 29*second || got > 31*second {
			t.Errorf("another got it after %v, want a lease", got)
		}
	})
}

func TestClose_OfAClientThatHasAbandoned_FreesNoLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, h, nil), peer(t, h, nil)
		for _, name := range []string{"a", "b"} {
			outer := mustLock(t, t.Context(), c, name)
			inner := mustLock(t, outer.Context(t.Context()), c, name)
			if err := inner.Abandon(); err != nil {
				t.Fatal(err)
			}
			if name == "a" {
				mustUnlock(t, outer)
			}
		}
		start := time.Now()
		if err := c.Close(); err != nil || time.Since(start) > second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		if _, err := other.TryLock(t.Context(), "b"); !errors.Is(err, ErrHeld) {
			t.Errorf("b, which another hold kept: %v", err)
		}
		if got := heldFor(t, other); got < 29*second {
			t.Errorf("another got it after %v", got)
		}
	})
}

func TestClose_OfAClientThatHasAbandoned_KeepsForALeaseWhatDoesNotEndByItself(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, &forever{h}, nil), peer(t, h, nil)
		if err := mustLock(t, t.Context(), c, "a").Abandon(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * second)
		start := time.Now()
		if err := c.Close(); err != nil || time.Since(start) > second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		if got := heldFor(t, other); got < 17*second || got > 19*second {
			t.Errorf("another got it after %v, want the rest of a lease", got)
		}
	})
}

func TestAbandon_WithinAMinHoldThatNoLeaseCovers_KeepsItToItsEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, &forever{h}, nil), peer(t, h, nil)
		defer c.Close()
		if err := must(t)(c.Mutex("a", &LockOptions{MinHold: time.Minute}).Lock(t.Context())).Abandon(); err != nil {
			t.Fatal(err)
		}
		if got := heldFor(t, other); got < 59*second || got > 61*second {
			t.Errorf("another got it after %v, want the MinHold", got)
		}
	})
}

func TestAbandon_AFurtherHoldHearsOfABreakAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		outer := mustLock(t, t.Context(), c, "a")
		inner := mustLock(t, outer.Context(t.Context()), c, "a")
		if err := outer.Abandon(); err != nil {
			t.Fatal(err)
		}
		if err := other.Break(t.Context(), KindMutex, "a", inner.Token()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !isClosed(inner.Lost()) {
			t.Error("the hold that went on was not told")
		}
		wantLost(t, inner.Unlock(t.Context()), LostBroken)
	})
}

// pushes has every grant come with less than was asked for, as a push does: nothing else has asked the engine yet.
func pushes(h *hooks) {
	on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		short := *r
		short.Lease = 2 * second
		return h.Driver.Acquire(ctx, &short)
	})
}

// justGranted are the ways to a grant for which the engine has less than a lease at first.
var justGranted = map[string]func(t *testing.T, c *Client, h *hooks) *Lease{
	"pushed": func(t *testing.T, c *Client, h *hooks) *Lease {
		pushes(h)
		return mustLock(t, t.Context(), c, "a")
	},
	"taken over": func(t *testing.T, c *Client, _ *hooks) *Lease {
		m := c.Mutex("a", &LockOptions{Retain: time.Minute})
		mustUnlock(t, must(t)(m.Lock(t.Context())))
		time.Sleep(second - 1) // retained with a short lease, of which half is over
		synctest.Wait()
		return must(t)(m.Lock(t.Context()))
	},
}

func TestAbandon_BeforeTheEngineWasAsked_KeepsTheLockForALease(t *testing.T) {
	for how, grant := range justGranted {
		for name, end := range map[string]func(t *testing.T, c *Client, l *Lease) error{
			"abandoned": func(_ *testing.T, _ *Client, l *Lease) error { return l.Abandon() },
			"abandoned, and the client closed": func(_ *testing.T, c *Client, l *Lease) error {
				return errors.Join(l.Abandon(), c.Close())
			},
			"pending, and the client closed": func(t *testing.T, c *Client, l *Lease) error {
				over, err := l.Pending()
				t.Cleanup(over)
				return errors.Join(err, c.Close())
			},
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				// CloseTimeout is short, so that no renewal falls due while Close waits for what is pending.
				bubble(t, &Options{CloseTimeout: 2 * time.Millisecond}, func(t *testing.T, c *Client, h *hooks) {
					other := peer(t, h, nil)
					l := grant(t, c, h)
					if err := end(t, c, l); err != nil {
						t.Fatal(err)
					}
					if got := heldFor(t, other); got < 29*second || got > 31*second {
						t.Errorf("another got it after %v, want a lease", got)
					}
				})
			})
		}
	}
}

func TestAbandon_WhoseLastRenewalFails_RepeatsIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := justGranted["pushed"](t, c, h)
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			if h.renewals.Load() < 4 {
				refused(ctx, batch, done)
				return
			}
			h.Driver.Renew(ctx, batch, done)
		})
		if err := l.Abandon(); err != nil {
			t.Fatal(err)
		}
		if got := heldFor(t, other); got < 29*second || got > 31*second {
			t.Errorf("another got it after %v, want a lease", got)
		}
	})
}

func TestAbandon_OfWhatTheEngineHasForALease_AsksNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		for name, o := range map[string]*LockOptions{"a": nil, "b": {NoRenew: true}} {
			l := must(t)(c.Mutex(name, o).Lock(t.Context()))
			time.Sleep(5 * second)
			if err := l.Abandon(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := h.renewals.Load(); n != 0 {
			t.Errorf("%d renewals", n)
		}
	})
}
