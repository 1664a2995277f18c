package interlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestClose_ReleasesEverythingAndWakesEverybody(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		var leases []*Lease
		for i := range 100 {
			leases = append(leases, mustLock(t, t.Context(), c, fmt.Sprint(i)))
		}
		work := leases[0].Context(t.Context())
		foreign := mustLock(t, t.Context(), other, "foreign")
		waits := []<-chan outcome{
			lockLater(t.Context(), c, "foreign"),
			lockLater(t.Context(), c, "0"),
			lockLater(WithOwner(t.Context(), "me"), c, "foreign"),
		}
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		for i, wait := range waits {
			if got := <-wait; !errors.Is(got.err, ErrClosed) || errors.Is(got.err, ErrHeld) {
				t.Errorf("wait %d: %v", i, got.err)
			}
		}
		for _, l := range leases {
			if !errors.Is(l.Err(), ErrReleased) || !errors.Is(l.Unlock(t.Context()), ErrReleased) ||
				isClosed(l.Lost()) {
				t.Fatalf("after Close a lease says %v", l.Err())
			}
		}
		if !errors.Is(context.Cause(work), ErrReleased) {
			t.Errorf("the work goes on: %v", context.Cause(work))
		}
		for i := range 100 {
			l, err := other.TryLock(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatalf("not free after Close: %v", err)
			}
			mustUnlock(t, l)
		}
		mustUnlock(t, foreign)
		mustUnlock(t, mustLock(t, t.Context(), other, "foreign")) // nothing of c is queued
		if _, err := c.Lock(t.Context(), "a"); !errors.Is(err, ErrClosed) {
			t.Errorf("Lock on a closed client: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

func TestClose_OnAHungEngine_ReturnsInTimeAndSaysWhatIsUnknown(t *testing.T) {
	bubble(t, &Options{CloseTimeout: 3 * second}, func(t *testing.T, c *Client, h *hooks) {
		mustLock(t, t.Context(), c, "a")
		on(h, &h.release, func(ctx context.Context, _ *driver.Release) error {
			<-ctx.Done()
			return ctx.Err()
		})
		start := time.Now()
		if err := c.Close(); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Close: %v", err)
		}
		if got := time.Since(start); got > 3*second+50*time.Millisecond {
			t.Errorf("Close took %v", got)
		}
	})
}

// Whoever was told of a loss must not read that nothing has happened, nor may anybody whose hold Close has ended.
func TestClose_OnAnEngineThatCannotBeReached_SaysWhenTheLocksAreFree(t *testing.T) {
	bubble(t, &Options{CloseTimeout: 3 * second}, func(t *testing.T, c *Client, h *hooks) {
		lost := mustLock(t, t.Context(), c, "lost")
		on(h, &h.renew, refused)
		on(h, &h.release, func(_ context.Context, r *driver.Release) error {
			return &UnavailableError{Op: "release", Name: r.Name, Err: syscall.ECONNREFUSED, NotSent: true}
		})
		<-lost.Lost()
		mustLock(t, t.Context(), c, "held")
		err := c.Close()
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("Close: %v", err)
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			if strings.Contains(line, "nothing was done") ||
				!strings.Contains(line, "becomes free when its lease has ended") {
				t.Errorf("it says: %s", line)
			}
		}
	})
}

func TestUnlock_OnAHungEngine_ReturnsWithItsContextAndGoesOnInTheBackground(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.release, func(ctx context.Context, _ *driver.Release) error {
			<-ctx.Done()
			return ctx.Err()
		})
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		start := time.Now()
		err := l.Unlock(ctx)
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got := time.Since(start); got > second+50*time.Millisecond {
			t.Errorf("returned after %v", got)
		}
		on(h, &h.release, h.Driver.Release) // the server comes back
		time.Sleep(5 * second)
		l, err = peer(t, h, nil).TryLock(t.Context(), "a")
		if err != nil {
			t.Fatalf("the release did not go on: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestUnlock_WhoseReplyWasLost_SucceedsOnTheRetry(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			on(h, &h.release, h.Driver.Release)
			if err := h.Driver.Release(ctx, r); err != nil {
				return err
			}
			return errors.New("connection reset") // it was done, but nobody heard
		})
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("got %v", err)
		}
		if n := h.releases.Load(); n != 2 {
			t.Errorf("%d releases", n)
		}
	})
}

func TestUnlock_OfAHoldThatTheEngineLost_SaysLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		if err := h.Driver.Release(t.Context(), l.hold().Engine.ReleaseRequest()); err != nil {
			t.Fatal(err)
		}
		wantLost(t, l.Unlock(t.Context()), LostExpired)
	})
}

func TestLock_OnAHungEngine_ReturnsWithItsContextAndLeavesNothing(t *testing.T) {
	for name, lock := range map[string]func(*Client, context.Context) (*Lease, error){
		"Lock":    func(c *Client, ctx context.Context) (*Lease, error) { return c.Lock(ctx, "a") },
		"TryLock": func(c *Client, ctx context.Context) (*Lease, error) { return c.TryLock(ctx, "a") },
		"named owner": func(c *Client, ctx context.Context) (*Lease, error) {
			return c.Lock(WithOwner(ctx, "me"), "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
					if _, err := h.Driver.Acquire(context.WithoutCancel(ctx), r); err != nil { // it arrives
						t.Error(err)
					}
					<-ctx.Done() // but the reply does not
					return driver.Grant{}, ctx.Err()
				})
				ctx, cancel := context.WithTimeout(t.Context(), second)
				defer cancel()
				start := time.Now()
				_, err := lock(c, ctx)
				if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) ||
					errors.Is(err, ErrHeld) {
					t.Errorf("got %v", err)
				}
				if time.Since(start) != second {
					t.Errorf("returned after %v", time.Since(start))
				}
				synctest.Wait()
				l, err := peer(t, h, nil).TryLock(t.Context(), "a")
				if err != nil {
					t.Fatalf("an orphan blocks the lock: %v", err)
				}
				mustUnlock(t, l)
			})
		})
	}
}

func TestLock_ByAnEngineThatCannotBeReached_FailsAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		refused := errors.New("connection refused")
		on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, refused
		})
		for range 2 {
			if _, err := c.Lock(t.Context(), "a"); !errors.Is(err, ErrUnavailable) || !errors.Is(err, refused) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestAWaitThatHadBegun_SurvivesABrokenConnection(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), peer(t, h, nil), "a")
		broken := make(chan struct{})
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() {
				select {
				case <-broken:
					cancel()
				case <-ctx.Done():
				}
			}()
			return h.Driver.Acquire(ctx, r)
		})
		wait := lockLater(t.Context(), c, "a")
		synctest.Wait()
		on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, errors.New("connection refused")
		})
		close(broken)
		time.Sleep(10 * second)
		on(h, &h.acquire, h.Driver.Acquire)
		time.Sleep(second)
		mustUnlock(t, first)
		got := <-wait
		if got.err != nil {
			t.Fatal(got.err)
		}
		mustUnlock(t, got.lease)
	})
}

func TestCancelRacingWithTheGrant_LeavesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		for range 200 {
			first := mustLock(t, t.Context(), other, "a")
			ctx, cancel := context.WithCancel(t.Context())
			wait := lockLater(ctx, c, "a")
			synctest.Wait()
			go cancel()
			mustUnlock(t, first)
			if got := <-wait; got.err == nil {
				mustUnlock(t, got.lease)
			}
			synctest.Wait()
			l, err := other.TryLock(t.Context(), "a")
			if err != nil {
				t.Fatalf("something is left: %v", err)
			}
			mustUnlock(t, l)
		}
	})
}

func TestEngineTakesTheHoldBackBeforeTheAnswer_IsNotHeld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			g, err := h.Driver.Acquire(ctx, r)
			on(h, &h.acquire, h.Driver.Acquire)
			r.Lost(LostBroken, nil)
			return g, err
		})
		l := mustLock(t, t.Context(), c, "a") // asks again
		if n := h.acquires.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
		mustUnlock(t, l)
	})
}

// mute is an engine that answers Look, Locks, Break and LatchCount only by the end of their context.
type mute struct{ *hooks }

func (mute) Look(ctx context.Context, _ driver.Key) (LockInfo, error) {
	<-ctx.Done()
	return LockInfo{}, ctx.Err()
}

func (mute) Locks(ctx context.Context, _ string) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) {
		<-ctx.Done()
		yield(LockInfo{}, ctx.Err())
	}
}

func (mute) Break(ctx context.Context, _ driver.Key, _ uint64) error {
	<-ctx.Done()
	return ctx.Err()
}

func (mute) LatchCount(ctx context.Context, _ driver.Key) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// questions are the calls of a client that ask the engine once and do not wait for a lock.
var questions = map[string]func(ctx context.Context, c *Client) error{
	"Look":   func(ctx context.Context, c *Client) error { _, err := c.Look(ctx, KindMutex, "a"); return err },
	"Leader": func(ctx context.Context, c *Client) error { _, err := c.Election("a", nil).Leader(ctx); return err },
	"Count":  func(ctx context.Context, c *Client) error { _, err := c.Latch("a").Count(ctx); return err },
	"Wait":   func(ctx context.Context, c *Client) error { return c.Latch("a").Wait(ctx) },
	"Break":  func(ctx context.Context, c *Client) error { return c.Break(ctx, KindMutex, "a", 1) },
	"Locks": func(ctx context.Context, c *Client) (last error) {
		for _, err := range c.List(ctx, "") {
			last = err
		}
		return last
	},
}

func TestClose_EndsQuestionsThatAreNotAnswered(t *testing.T) {
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c := mustNew(t, mute{h}, nil)
				ctx, cancel := context.WithCancel(t.Context())
				said := make(chan error, 1)
				go func() { said <- ask(ctx, c) }()
				stillWaits(t, said, "before anything ends it")
				cancel()
				wantErr(t, "when its context has ended", <-said, context.Canceled)
				ctx, cancel = context.WithTimeout(t.Context(), time.Hour) // virtual
				defer cancel()
				go func() { said <- ask(ctx, c) }()
				stillWaits(t, said, "before Close")
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				wantErr(t, "after Close", <-said, ErrClosed)
			})
		})
	}
}

func TestClose_SaysWhatOfAnEarlierCallIsNotConfirmed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			_, _ = h.Driver.Acquire(ctx, r)
			<-ctx.Done() // granted, and the answer is lost
			return driver.Grant{}, ctx.Err()
		})
		on(h, &h.release, h.hung)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		_, err := c.Lock(ctx, "a")
		wantErr(t, "Lock", err, ErrUnavailable)
		start := time.Now()
		wantErr(t, "Close", c.Close(), ErrUnavailable)
		if took := time.Since(start); took > c.in().Config.CloseTimeout {
			t.Errorf("it took %v", took)
		}
	})
}
