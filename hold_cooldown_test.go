package interlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// resting runs f on an engine of each lifetime, in virtual time, with two clients of the same store.
func resting(t *testing.T, f func(t *testing.T, c, other *Client)) {
	for name, wrap := range map[string]func(h *hooks) driver.Driver{
		"leases":       func(h *hooks) driver.Driver { return h },
		"local leases": func(h *hooks) driver.Driver { return h.Driver },
		"sessions": func(h *hooks) driver.Driver {
			s := &sessions{hooks: h}
			s.pinged.ping()
			eternal := time.Now().Add(time.Hour)
			s.pinged.at.Store(&eternal)
			return &requeuing{s}
		},
		"process": func(h *hooks) driver.Driver { return &forever{h} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				d := wrap(h)
				release := h.release
				on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
					if r.Keep > 0 && d.Traits().Lifetime != driver.Leases {
						t.Errorf("an engine without leases is asked to keep a hold for %v", r.Keep)
					}
					return release(ctx, r)
				})
				c := mustNew(t, d, nil)
				defer func() {
					_ = c.Close()
					// Releases that go on after Close end in this time.
					time.Sleep(time.Minute) // virtual
				}()
				f(t, c, peer(t, h, nil))
			})
		})
	}
}

// requeuing is a session engine that can also release and queue again in one step.
type requeuing struct{ *sessions }

func (s *requeuing) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	r.Lease = time.Hour
	g, err := s.hooks.Requeue(ctx, give, r)
	g.Lease, g.Session = 10*second, &s.pinged
	return g, err
}

func wantAt(t *testing.T, at time.Time, what string) {
	t.Helper()
	if now := time.Now(); now.Before(at) || now.After(at.Add(10*time.Millisecond)) {
		t.Errorf("%s: %v from the instant at which it was to happen", what, now.Sub(at))
	}
}

func TestMinHold_AnEarlyUnlockKeepsOthersOut_ForTheRest(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		m := c.Mutex("job", &LockOptions{MinHold: 20 * second})
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(20 * second)
		time.Sleep(5 * second) // virtual
		mustUnlock(t, l)
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrReleased) || !errors.Is(l.Err(), ErrReleased) {
			t.Errorf("the second Unlock: %v, Err: %v", err, l.Err())
		}
		for _, by := range []*Client{c, other} {
			if _, err := by.TryLock(t.Context(), "job"); !errors.Is(err, ErrHeld) {
				t.Errorf("a try within the rest: %v", err)
			}
		}
		inside := lockLater(t.Context(), c, "job")
		outside := lockLater(t.Context(), other, "job")
		for range 2 {
			select {
			case o := <-inside:
				mustUnlock(t, o.lease)
			case o := <-outside:
				mustUnlock(t, o.lease)
			}
			wantAt(t, end, "who waits")
		}
	})
}

func TestMinHold_WhenItIsOver_ChangesNothing(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		l, err := c.Mutex("job", &LockOptions{MinHold: 2 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * second) // virtual
		mustUnlock(t, l)
		if l, err = other.TryLock(t.Context(), "job"); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, l)
	})
}

func TestMinHold_OfAHoldThatWasEnteredAgain_CountsAfterItsUnlock(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		first, err := c.Mutex("job", &LockOptions{MinHold: 20 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(20 * second)
		second := mustLock(t, first.Context(t.Context()), c, "job")
		mustUnlock(t, first)
		mustUnlock(t, second)
		mustUnlock(t, mustLock(t, t.Context(), other, "job"))
		wantAt(t, end, "the next")
	})
}

func TestMinHold_OutlivesClose(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		var holds [2]*Lease
		for i, name := range []string{"held", "unlocked"} {
			var err error
			if holds[i], err = c.Mutex(name, &LockOptions{MinHold: 20 * second}).Lock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		end := time.Now().Add(20 * second)
		mustUnlock(t, holds[1])
		if err := c.Close(); err != nil || time.Now().After(end) {
			t.Fatalf("Close: %v", err)
		}
		if !errors.Is(holds[0].Err(), ErrReleased) {
			t.Errorf("after Close: %v", holds[0].Err())
		}
		for _, name := range []string{"held", "unlocked"} {
			mustUnlock(t, mustLock(t, t.Context(), other, name))
			wantAt(t, end, name)
		}
	})
}

func TestMinHold_OutlivesClose_AndIsGivenBackThoughTheEngineFailsThen(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, &forever{h}, nil), peer(t, h, nil)
		must(t)(c.Mutex("job", &LockOptions{MinHold: 20 * second}).Lock(t.Context()))
		end := time.Now().Add(20 * second)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		var failed atomic.Int64
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			if failed.Add(1) <= 3 {
				return errors.New("connection reset")
			}
			return h.Driver.Release(ctx, r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // virtual
		defer cancel()
		mustUnlock(t, mustLock(t, ctx, other, "job"))
		if late := time.Since(end); late < 0 || late > second {
			t.Errorf("given on %v after the end of the MinHold", late)
		}
	})
}

func TestMinHold_IsNoLocalPass(t *testing.T) {
	bubble(t, &Options{LocalHandoffTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		l, err := c.Mutex("job", &LockOptions{MinHold: second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(second)
		next := lockLater(t.Context(), c, "job")
		time.Sleep(second / 2) // virtual
		mustUnlock(t, l)
		o := <-next
		wantAt(t, end, "the next of this process")
		if o.lease.Token() <= l.Token() || o.lease.hold().Local {
			t.Errorf("token %d after %d, local %v", o.lease.Token(), l.Token(), o.lease.hold().Local)
		}
		mustUnlock(t, o.lease)
	})
}

func TestMinHold_OfAnEndByMaxHold_CountsToo(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		l, err := c.Mutex("job", &LockOptions{MinHold: 20 * second, MaxHold: 5 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(20 * second)
		<-l.Lost()
		mustUnlock(t, mustLock(t, t.Context(), other, "job"))
		wantAt(t, end, "the next")
	})
}

func TestMinHold_OfWhatNobodyGotToKnow_DoesNotCount(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		declined := 0
		for i := range 40 {
			name := fmt.Sprint("job ", i)
			ctx, cancel := context.WithCancel(t.Context())
			on(h, &h.acquire, func(inner context.Context, r *driver.Request) (driver.Grant, error) {
				g, err := h.Driver.Acquire(inner, r)
				cancel() // in the instant of the grant
				return g, err
			})
			l, err := c.Mutex(name, &LockOptions{MinHold: time.Hour}).Lock(ctx)
			on(h, &h.acquire, h.Driver.Acquire)
			if err == nil { // the grant was seen first
				mustUnlock(t, l)
				continue
			}
			declined++
			start := time.Now()
			mustUnlock(t, mustLock(t, t.Context(), c, name))
			wantAt(t, start, name)
		}
		if declined == 0 {
			t.Error("no grant was declined")
		}
	})
}

// A Multi that cannot have all gives back what it had taken. Another goroutine of its owner had a hold of the same lock
// meanwhile, whose MinHold must still count.
func TestMinHold_OfWhatNobodyGotToKnow_IsOnlyItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		multi, other time.Duration // their MinHold
		before       bool          // the other has its hold when the Multi begins
	}{
		"the other's counts":                 {0, 20 * second, false},
		"the other's, which was first":       {0, 20 * second, true},
		"that of both":                       {20 * second, 20 * second, false},
		"the Multi's does not":               {20 * second, 0, false},
		"the Multi's on what was held, also": {20 * second, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			resting(t, func(t *testing.T, c, other *Client) {
				apart := mustLock(t, t.Context(), other, "b")
				owner := mustLock(t, t.Context(), c, "a")
				same := owner.Context(t.Context())
				job := c.Mutex("a job", &LockOptions{MinHold: test.other})
				end := time.Now().Add(test.other)
				var hold *Lease
				if test.before {
					hold = must(t)(job.Lock(same))
				}
				giveUp, cancel := context.WithCancel(same)
				gaveUp := make(chan error, 1)
				go func() { // ends with its context
					_, err := c.Multi([]string{"a job", "b"}, &LockOptions{MinHold: test.multi}).Lock(giveUp)
					gaveUp <- err
				}()
				synctest.Wait() // it has the first, and waits for the second
				if !test.before {
					hold = must(t)(job.Lock(same))
				}
				mustUnlock(t, hold)
				cancel()
				if err := <-gaveUp; !errors.Is(err, context.Canceled) {
					t.Fatalf("the Multi: %v", err)
				}
				mustUnlock(t, mustLock(t, t.Context(), other, "a job"))
				wantAt(t, end, "the next")
				mustUnlock(t, owner)
				mustUnlock(t, apart)
			})
		})
	}
}

func TestLockDelay_OfALossThatTheHolderSees(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		m := c.Mutex("a", &LockOptions{LockDelay: 20 * second, MaxHold: 5 * second})
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-l.Lost()
		end := time.Now().Add(20 * second)
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		wantAt(t, end, "after the loss")
		if l, err = m.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, l)
		if l, err = other.TryLock(t.Context(), "a"); err != nil {
			t.Fatalf("after a release: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestLockDelay_OfAHolderThatIsCutOff_FollowsItsLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		on(h, &h.renew, noRenewals)
		on(h, &h.release, func(ctx context.Context, _ *driver.Release) error { <-ctx.Done(); return ctx.Err() })
		l, err := c.Mutex("a", &LockOptions{LockDelay: 20 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(defaultLease + 20*second)
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		wantAt(t, end, "after lease and delay")
		wantLost(t, l.Err(), LostUnconfirmed)
	})
}

func TestLockDelay_OfABreak_AndASecondBreakEndsIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l, err := c.Mutex("a", &LockOptions{LockDelay: 20 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		broken := func() {
			t.Helper()
			if err := other.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
				t.Fatal(err)
			}
		}
		broken()
		wantLost(t, l.Err(), LostBroken)
		wantLost(t, l.Unlock(t.Context()), LostBroken)
		if _, err := other.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Fatalf("within the delay: %v", err)
		}
		broken()
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
	})
}

func TestLockDelay_WhereNothingRemembers_IsUnsupported(t *testing.T) {
	sessionBubble(t, func(t *testing.T, c *Client, _ *sessions) {
		if _, err := c.Mutex("a", &LockOptions{LockDelay: second}).Lock(t.Context()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
}
