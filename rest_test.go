package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// resting runs f on engines of each sort, in virtual time: the client's, and another client's of the same store.
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
					if r.Keep > 0 && d.Traits().Ends != driver.Leases {
						t.Errorf("an engine without leases is asked to keep a hold for %v", r.Keep)
					}
					return release(ctx, r)
				})
				c := mustNew(t, d, nil)
				defer func() {
					_ = c.Close()
					// What outlives Close ends meanwhile.
					time.Sleep(time.Minute) // virtual
				}()
				f(t, c, peer(t, h, nil))
			})
		})
	}
}

// requeuing is a session engine that can also queue again in one step.
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
	bubble(t, &Options{LocalTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
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
		if o.lease.Token() <= l.Token() || o.lease.local {
			t.Errorf("token %d after %d, local %v", o.lease.Token(), l.Token(), o.lease.local)
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

func TestLossDelay_OfALossThatTheHolderSees(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		m := c.Mutex("a", &LockOptions{LossDelay: 20 * second, MaxHold: 5 * second})
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

func TestLossDelay_OfAHolderThatIsCutOff_FollowsItsLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		on(h, &h.renew, noRenewals)
		on(h, &h.release, func(ctx context.Context, _ *driver.Release) error { <-ctx.Done(); return ctx.Err() })
		l, err := c.Mutex("a", &LockOptions{LossDelay: 20 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(defaultLease + 20*second)
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		wantAt(t, end, "after lease and delay")
		wantLost(t, l.Err(), LostUnconfirmed)
	})
}

func TestLossDelay_OfABreak_AndASecondBreakEndsIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l, err := c.Mutex("a", &LockOptions{LossDelay: 20 * second}).Lock(t.Context())
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

func TestLossDelay_WhereNothingRemembers_IsUnsupported(t *testing.T) {
	sessionBubble(t, func(t *testing.T, c *Client, _ *sessions) {
		if _, err := c.Mutex("a", &LockOptions{LossDelay: second}).Lock(t.Context()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
}

// TestRests_InRandomHistories: several clients take one lock with random MinHold and LossDelay, and release or lose it.
// Nobody is to get in before what the one before has asked for is over.
func TestRests_InRandomHistories(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			resting(t, func(t *testing.T, c, other *Client) {
				random := rand.New(rand.NewPCG(seed, 0))
				var closed time.Time // until then nobody may get in; written by who is inside
				var all sync.WaitGroup
				for i := range 6 {
					own, by := rand.New(rand.NewPCG(seed, random.Uint64())), []*Client{c, other}[i%2]
					all.Go(func() {
						for range 15 {
							restOnce(t, by, own, &closed)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

func restOnce(t *testing.T, c *Client, random *rand.Rand, closed *time.Time) {
	seconds := func(n int) time.Duration { return time.Duration(random.IntN(n)) * second }
	o := &LockOptions{MinHold: seconds(4)}
	if c.traits.Ends == driver.Leases {
		o.LossDelay = seconds(4)
	}
	loses := random.IntN(3) == 0
	if loses {
		o.MaxHold = second + seconds(2)
	}
	l, err := c.Mutex("a", o).Lock(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	now := time.Now()
	if now.Before(*closed) {
		t.Errorf("let in %v early", closed.Sub(now))
	}
	*closed = now.Add(o.MinHold)
	if loses {
		*closed = maxTime(*closed, now.Add(o.MaxHold+o.LossDelay))
		<-l.Lost()
		return
	}
	time.Sleep(seconds(3)) // virtual
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestRests_OfSharedLocksToo(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		kept := &LockOptions{MinHold: 20 * second}
		for name, lock := range map[string]func(c *Client, o *LockOptions) (*Lease, error){
			"write": func(c *Client, o *LockOptions) (*Lease, error) { return c.RWMutex("rw", o).Lock(t.Context()) },
			"permits": func(c *Client, o *LockOptions) (*Lease, error) {
				return c.Semaphore("sem", 2, o).Acquire(t.Context(), 2)
			},
		} {
			l, err := lock(c, kept)
			if err != nil {
				t.Fatal(err)
			}
			end := time.Now().Add(20 * second)
			mustUnlock(t, l)
			next, err := lock(other, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantAt(t, end, name)
			mustUnlock(t, next)
			if c.traits.Ends != driver.Leases {
				continue
			}
			if l, err = lock(c, &LockOptions{LossDelay: 20 * second, MaxHold: second}); err != nil {
				t.Fatal(err)
			}
			<-l.Lost()
			end = time.Now().Add(20 * second)
			if next, err = lock(other, nil); err != nil {
				t.Fatal(err)
			}
			wantAt(t, end, name+" after a loss")
			mustUnlock(t, next)
		}
		// A read that is kept lets other readers in.
		l, err := c.RWMutex("reads", kept).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		mustUnlock(t, l)
		if l, err = other.RWMutex("reads", nil).RLock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantAt(t, start, "another reader")
		mustUnlock(t, l)
		if l, err = other.RWMutex("reads", nil).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantAt(t, start.Add(20*second), "a writer")
		mustUnlock(t, l)
	})
}
