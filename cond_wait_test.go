package interlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// waitLater waits for the condition of "a" in a goroutine.
func waitLater(ctx context.Context, c *Client, l *Lease) <-chan outcome {
	return later(func() (*Lease, error) { return condOf(c).Wait(ctx, l) })
}

// mustSignal signals once all other goroutines of the bubble are blocked.
func mustSignal(t *testing.T, c *Client) {
	t.Helper()
	synctest.Wait()
	if err := condOf(c).Signal(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestCond_WithMinHold_GivesTheLockUpWhenThatIsOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := must(t)(c.Mutex("a", &LockOptions{MinHold: time.Minute}).Lock(t.Context()))
		end := time.Now().Add(time.Minute)
		time.Sleep(10 * second) // virtual
		out := waitLater(t.Context(), c, l)
		stillWaits(t, out, "before the signal")
		if l.Err() != nil {
			t.Errorf("within the MinHold the hold says %v", l.Err())
		}
		inside := mustLock(t, t.Context(), other, "a")
		wantAt(t, end, "another")
		if !errors.Is(l.Err(), ErrReleased) {
			t.Errorf("the hold that was given up says %v", l.Err())
		}
		mustSignal(t, other) // under the lock, as one does
		stillWaits(t, out, "while another holds the lock")
		mustUnlock(t, inside)
		next := woken(t, "who waits", out)
		end = time.Now().Add(time.Minute)
		mustUnlock(t, next) // which has a MinHold too
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		wantAt(t, end, "another after the wait")
	})
}

func TestCond_WithMinHold_EndsBeforeThatIsOver(t *testing.T) {
	for name, ends := range map[string]struct {
		by   func(t *testing.T, c *Client, l *Lease, cancel context.CancelFunc)
		want []error
	}{
		"its context ends": {
			func(_ *testing.T, _ *Client, _ *Lease, cancel context.CancelFunc) { cancel() },
			[]error{context.Canceled},
		},
		"the hold is lost": {func(t *testing.T, c *Client, l *Lease, _ context.CancelFunc) {
			if err := c.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
				t.Error(err)
			}
		}, []error{ErrNotHeld, ErrLost}},
		"the hold is unlocked": {func(t *testing.T, _ *Client, l *Lease, _ context.CancelFunc) {
			mustUnlock(t, l)
		}, []error{ErrNotHeld, ErrReleased}},
		"the hold is abandoned": {func(t *testing.T, _ *Client, l *Lease, _ context.CancelFunc) {
			if err := l.Abandon(); err != nil {
				t.Error(err)
			}
		}, []error{ErrNotHeld, ErrReleased}},
		"the client is closed": {func(t *testing.T, c *Client, _ *Lease, _ context.CancelFunc) {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}, []error{ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				other := peer(t, h, nil)
				l := must(t)(c.Mutex("a", &LockOptions{MinHold: 20 * second}).Lock(t.Context()))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				out := waitLater(ctx, c, l)
				stillWaits(t, out, "within the MinHold")
				start := time.Now()
				ends.by(t, c, l, cancel)
				got := <-out
				wantAt(t, start, "the end of the wait")
				for _, want := range ends.want {
					wantErr(t, "Wait", got.err, want)
				}
				if l.Err() == nil {
					t.Error("the hold goes on")
				}
				mustUnlock(t, mustLock(t, t.Context(), other, "a"))
				if name != "the hold is lost" && time.Since(start) < 20*second {
					t.Errorf("another got in after %v", time.Since(start))
				}
			})
		})
	}
}

func TestCond_AHoldBesideAnAbandonedOne_CannotBeGivenUp(t *testing.T) {
	for name, ctx := range map[string]func(*testing.T) context.Context{
		"anonymous": (*testing.T).Context,
		"named":     func(t *testing.T) context.Context { return WithOwner(t.Context(), "order-7") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				other := peer(t, h, nil)
				l := mustLock(t, ctx(t), c, "a")
				if err := mustLock(t, l.Context(t.Context()), c, "a").Abandon(); err != nil {
					t.Fatal(err)
				}
				_, err := condOf(c).Wait(t.Context(), l)
				wantErr(t, "Wait", err, ErrNested)
				if l.Err() != nil {
					t.Fatalf("it has changed something: %v", l.Err())
				}
				mustUnlock(t, l)
				if got := heldFor(t, other); got < 29*second || got > 31*second {
					t.Errorf("another got it after %v, want a lease", got)
				}
			})
		})
	}
}

// slowParking is an engine that calls parked late: the hold has been given up for a while by then.
type slowParking struct {
	*hooks
	late time.Duration
}

func (s *slowParking) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	return s.hooks.CondWait(ctx, give, r, func() {
		time.Sleep(s.late) // virtual, in the goroutine of who waits
		parked()
	})
}

func TestCond_OfANamedOwner_IsNoLoss_ThoughTheWordThatItWaitsComesLate(t *testing.T) {
	for name, late := range map[string]time.Duration{
		"after a renewal": 12 * second,
		"after the lease": 2 * defaultLease,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				var losses, releases atomic.Int64
				c := mustNew(t, &slowParking{h, late}, &Options{Observer: &Observer{
					Lost: func(Event) { losses.Add(1) }, Released: func(Event) { releases.Add(1) },
				}})
				defer c.Close()
				if late > defaultLease {
					on(h, &h.renew, noRenewals)
				}
				l := mustLock(t, WithOwner(t.Context(), "order-7"), c, "a")
				work, lost := l.Context(t.Context()), l.Lost()
				out := waitLater(t.Context(), c, l)
				synctest.Wait()
				if l.Err() != nil { // the engine may still say that it has further holds
					t.Errorf("before the engine's word: %v", l.Err())
				}
				time.Sleep(late) // virtual
				synctest.Wait()
				if isClosed(lost) || !errors.Is(l.Err(), ErrReleased) || !errors.Is(context.Cause(work), ErrReleased) {
					t.Errorf("the hold that was given up says %v, its context %v", l.Err(), context.Cause(work))
				}
				mustSignal(t, c)
				mustUnlock(t, woken(t, "who waits", out))
				if losses.Load() != 0 || releases.Load() != 2 {
					t.Errorf("the observer was told of %d losses and %d releases", losses.Load(), releases.Load())
				}
			})
		})
	}
}

// refusing is an engine whose CondWait returns when the test says so, with the error that the test gives.
type refusing struct {
	*hooks
	answer chan error
}

func (r *refusing) CondWait(context.Context, *driver.Release, *driver.Request, func()) (driver.Grant, error) {
	return driver.Grant{}, <-r.answer
}

func TestCond_OfANamedOwner_WhoLosesItsHoldMeanwhile_IsToldByWait(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		r := &refusing{h, make(chan error)}
		c := mustNew(t, r, nil)
		defer c.Close()
		l := mustLock(t, WithOwner(t.Context(), "order-7"), c, "a")
		work := l.Context(t.Context())
		out := waitLater(t.Context(), c, l)
		synctest.Wait()
		_, err := condOf(c).Wait(t.Context(), l)
		wantErr(t, "another Wait meanwhile", err, ErrNotHeld)
		if err := c.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if work.Err() == nil {
			t.Error("the work under a hold that is broken goes on")
		}
		r.answer <- ErrNested
		wantLost(t, (<-out).err, LostBroken)
		wantErr(t, "Unlock", l.Unlock(t.Context()), ErrReleased)
		mustUnlock(t, mustLock(t, WithOwner(t.Context(), "order-7"), c, "a")) // nothing is left of it
	})
}

func TestCond_OfANamedOwner_WhoIsRefused_GoesOnWithItsHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		r := &refusing{h, make(chan error, 1)}
		c := mustNew(t, r, nil)
		defer c.Close()
		l := mustLock(t, WithOwner(t.Context(), "order-7"), c, "a")
		for range 2 { // the second is not told that the first is still under way
			r.answer <- ErrNested
			_, err := condOf(c).Wait(t.Context(), l)
			wantErr(t, "Wait", err, ErrNested)
		}
		if err := c.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
			t.Fatal(err)
		}
		<-l.Lost() // it is not being given up, so it is lost as any other
		wantLost(t, l.Err(), LostBroken)
	})
}

func TestCond_WhoIsWoken_LetsInTheOthersOfItsOwner(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := mustLock(t, t.Context(), c, "a")
		owner, cancel := context.WithTimeout(context.WithoutCancel(l.Context(t.Context())), time.Hour) // virtual
		defer cancel()
		out := waitLater(owner, c, l)
		synctest.Wait()
		inside := mustLock(t, t.Context(), other, "a")
		mustSignal(t, c)
		second := lockLater(owner, c, "a") // behind who was woken, as the engine sees it
		synctest.Wait()
		mustUnlock(t, inside)
		next := woken(t, "who waited for the condition", out)
		again := woken(t, "another goroutine of its owner", second)
		if again.Token() != next.Token() {
			t.Errorf("tokens %d and %d", next.Token(), again.Token())
		}
		mustUnlock(t, next)
		mustUnlock(t, again)
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
	})
}

func TestDeadlock_IsNotTold_WhileAWaitForAConditionMayEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		b := mustLock(t, t.Context(), c, "b")
		mine := b.Context(t.Context())
		waits := waitLater(t.Context(), c, mustLock(t, mine, c, "a"))
		two := holdThen(t, t.Context(), c, "x", "b", 0)
		synctest.Wait()
		stuck := lockLater(context.WithoutCancel(mine), c, "x")
		time.Sleep(time.Hour) // virtual
		stillWaits(t, stuck, "while its owner may be woken")
		stillWaits(t, two, "while the other may get on")
		mustSignal(t, c)
		mustUnlock(t, woken(t, "who waits for the condition", waits))
		mustUnlock(t, b)
		if err := <-two; err != nil {
			t.Error(err)
		}
		mustUnlock(t, woken(t, "who was stuck", stuck))
	})
}

// The same for named owners of two clients: the engine's lists do not tell who waits for a condition.
func TestDeadlock_IsNotTold_WhileAWaitForAConditionMayEnd_OverClients(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other, mine := peer(t, h, nil), WithOwner(t.Context(), "one")
		b := mustLock(t, mine, c, "b")
		waits := waitLater(t.Context(), c, mustLock(t, mine, c, "a"))
		two := holdThen(t, WithOwner(t.Context(), "two"), other, "x", "b", 0)
		synctest.Wait()
		stuck := lockLater(mine, c, "x")
		time.Sleep(time.Hour) // virtual
		stillWaits(t, stuck, "while its owner may be woken")
		stillWaits(t, two, "while the other may get on")
		mustSignal(t, c)
		mustUnlock(t, woken(t, "who waits for the condition", waits))
		mustUnlock(t, b)
		if err := <-two; err != nil {
			t.Error(err)
		}
		mustUnlock(t, woken(t, "who was stuck", stuck))
	})
}

// A limit that docs/limits/common.md tells: only the engine knows when a signal has come, and it does not know
// anonymous owners.
func TestCond_WhoIsWoken_WaitsForAnotherGoroutineOfItsAnonymousOwner(t *testing.T) {
	for _, named := range []bool{false, true} {
		bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
			ctx := t.Context()
			if named {
				ctx = WithOwner(ctx, "order-7")
			}
			l := mustLock(t, ctx, c, "a")
			owner := context.WithoutCancel(l.Context(ctx))
			out := waitLater(owner, c, l)
			synctest.Wait()
			second := mustLock(t, owner, c, "a")
			mustSignal(t, c)
			if named {
				mustUnlock(t, woken(t, "who was woken", out))
				mustUnlock(t, second)
				return
			}
			stillWaits(t, out, "while another goroutine of its owner is inside")
			mustUnlock(t, second)
			mustUnlock(t, woken(t, "who was woken", out))
		})
	}
}
