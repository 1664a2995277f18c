package interlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/memlock"
)

var errNoRights = &driver.RefusedError{
	Op: "acquire", Name: "a", Err: errors.New("NOPERM the user may not"), Hint: "give the user the right",
}

func wantRefused(t *testing.T, err error, op string) *RefusedError {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, ErrRefused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if text := err.Error(); refused.Op != op || refused.Name != "a" || strings.Contains(text, "did not answer") ||
		strings.Count(text, "refused") != 1 || !strings.HasSuffix(text, "(give the user the right)") ||
		strings.Contains(text, "\n") {
		t.Errorf("it says %q of %q", text, refused.Op)
	}
	return refused
}

func refuseAcquires(h *hooks, err error) {
	on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) { return driver.Grant{}, err })
}

func TestLock_ThatTheEngineRefuses_SaysWhyAndIsNotUndone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		refuseAcquires(h, errNoRights)
		_, err := c.Lock(t.Context(), "a")
		wantRefused(t, err, "lock")
		if !errors.Is(err, ErrUnavailable) || !driver.IsDefinite(err) {
			t.Errorf("%v is not known as trouble, or not as definite", err)
		}
		_, err = c.TryLock(t.Context(), "a")
		wantRefused(t, err, "lock")
		synctest.Wait()
		if n := h.releases.Load(); n != 0 {
			t.Errorf("%d releases of what was never taken", n)
		}
	})
}

func TestLock_ThatIsRefused_SaysSoInOneWay_WhateverTheDriverAdds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		for _, said := range []error{errNoRights, fmt.Errorf("here: %w", errNoRights)} {
			refuseAcquires(h, said)
			_, err := c.Lock(t.Context(), "a")
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Op != "lock" ||
				!strings.HasPrefix(err.Error(), `lock "a": the engine refused`) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestLock_ThatIsRefusedAfterAnotherCopy_IsUndone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		open := *errNoRights
		open.Open = true
		refuseAcquires(h, &open)
		_, err := c.Lock(t.Context(), "a")
		if refused := wantRefused(t, err, "lock"); !refused.Open {
			t.Error("the refusal does not say that a copy may be left")
		}
		synctest.Wait()
		if n := h.releases.Load(); n != 1 {
			t.Errorf("%d releases, want an undo", n)
		}
	})
}

func TestLock_ThatIsRefusedBesideACopyOfUnknownOutcome_IsUnknown(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		refuseAcquires(h, errors.Join(errNoRights, &driver.UnavailableError{Op: "acquire"}))
		_, err := c.Lock(t.Context(), "a")
		if driver.Refusal(err) != nil || driver.IsDefinite(err) ||
			!strings.Contains(err.Error(), "outcome is unknown") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAWait_ThatTheEngineRefuses_EndsAtOnceAndDoesNotSayHeld(t *testing.T) {
	for _, open := range []bool{false, true} {
		bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
			refusal := *errNoRights
			refusal.Open = open
			revoked := make(chan struct{})
			on(h, &h.acquire, func(_ context.Context, r *driver.Request) (driver.Grant, error) {
				r.Waiting(&HeldError{Kind: r.Kind, Name: r.Name, Client: "other"})
				<-revoked
				return driver.Grant{}, &refusal
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			out := []<-chan outcome{lockLater(ctx, c, "a"), lockLater(ctx, c, "a")}
			synctest.Wait()
			begin := time.Now()
			close(revoked)
			for _, o := range out {
				err := (<-o).err
				wantRefused(t, err, "lock")
				if errors.Is(err, ErrHeld) {
					t.Errorf("%v is also held", err)
				}
			}
			if waited := time.Since(begin); waited > 0 {
				t.Errorf("they were told after %v", waited)
			}
		})
	}
}

// What an attempt of unknown outcome has left is undone in the background. So the refusal of the next attempt must not
// say that nothing was changed.
func TestAWait_ThatIsRefusedAfterAnAttemptWithoutAnswer_SaysThatACopyMayBeLeft(t *testing.T) {
	for _, owner := range []string{"", "me"} {
		bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
			said := []error{errors.New("connection reset"), errNoRights}
			on(h, &h.acquire, func(_ context.Context, r *driver.Request) (driver.Grant, error) {
				r.Waiting(&HeldError{Kind: r.Kind, Name: r.Name})
				err := said[0]
				said = said[1:]
				return driver.Grant{}, err
			})
			ctx := t.Context()
			if owner != "" {
				ctx = WithOwner(ctx, owner)
			}
			_, err := c.Lock(ctx, "a")
			if refused := wantRefused(t, err, "lock"); !refused.Open {
				t.Errorf("%q: %v says that nothing was changed", owner, err)
			}
		})
	}
}

func TestLock_OfAnEngineThatCannotBeReached_SaysThatNothingWasDone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		refuseAcquires(h, &driver.UnavailableError{
			Op: "acquire", Name: "a", NotSent: true,
			Err: errors.New("connection refused"),
		})
		_, err := c.Lock(t.Context(), "a")
		var unavailable *UnavailableError
		if !errors.As(err, &unavailable) || !unavailable.NotSent || errors.Is(err, ErrRefused) ||
			strings.Contains(err.Error(), "unknown") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAWait_WhileTheEngineCannotBeReached_GoesOn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		calls := 0
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			if calls++; calls > 3 {
				return h.Driver.Acquire(ctx, r)
			}
			r.Waiting(&HeldError{Kind: r.Kind, Name: r.Name})
			return driver.Grant{}, &driver.UnavailableError{NotSent: true, Err: errors.New("LOADING")}
		})
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

// NotSent says that nothing has happened. So it may be set only if it is true of every attempt of a wait, also of the
// one under way.
func TestAWait_ThatMayHaveBeenSentOnce_DoesNotSayThatNothingWasSent(t *testing.T) {
	notSent := &driver.UnavailableError{NotSent: true, Err: errors.New("connection refused")}
	hangs := errors.New("hangs")
	for what, tc := range map[string]struct {
		said    []error // by the attempts, the last of them by all that follow
		notSent bool
	}{
		"none was sent":                  {[]error{notSent}, true},
		"the first may have been":        {[]error{errors.New("connection reset"), notSent}, false},
		"the last is still not answered": {[]error{notSent, hangs}, false},
	} {
		for _, owner := range []string{"", "me"} {
			t.Run(what+", "+owner, func(t *testing.T) {
				bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
					attempts := 0
					on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
						said := tc.said[min(attempts, len(tc.said)-1)]
						if attempts++; attempts == 1 {
							r.Waiting(&HeldError{Kind: r.Kind, Name: r.Name})
						}
						if said == hangs { //nolint:errorlint // it is the sign
							<-ctx.Done()
							said = ctx.Err()
						}
						return driver.Grant{}, said
					})
					ctx, cancel := context.WithTimeout(t.Context(), 10*shell.RetryPause+shell.RetryPause/2)
					defer cancel()
					if owner != "" {
						ctx = WithOwner(ctx, owner)
					}
					_, err := c.Lock(ctx, "a")
					var unavailable *UnavailableError
					if !errors.As(err, &unavailable) || unavailable.NotSent != tc.notSent ||
						!errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v", err)
					}
				})
			})
		}
	}
}

func TestUnlock_ThatTheEngineRefuses_SaysSoAtOnceAndGoesOn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		refused := 0
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			if refused++; refused > 2 {
				return h.Driver.Release(ctx, r)
			}
			return fmt.Errorf("here: %w", errNoRights)
		})
		var refusal *RefusedError
		if err := l.Unlock(t.Context()); !errors.As(err, &refusal) || refusal.Op != "unlock" {
			t.Errorf("Unlock: %v", err)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a")) // as soon as the release has gone through
	})
}

// The work was protected, but others wait until somebody mends what is wrong, so Do returns the refusal. A sync.Locker
// could only panic, so it stays silent.
func TestDo_WhoseReleaseIsRefused_SaysSoBesideWhatTheFunctionSays(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.release, func(context.Context, *driver.Release) error { return errNoRights })
		fn := func(context.Context) error { return errBug }
		_, tried := c.Mutex("b", nil).TryDo(t.Context(), fn)
		for verb, err := range map[string]error{
			"Do": c.Do(t.Context(), "a", fn), "TryDo": tried,
			"Multi.Do": c.Multi([]string{"c", "d"}, nil).Do(t.Context(), fn),
		} {
			if !errors.Is(err, ErrRefused) || !errors.Is(err, errBug) || errors.Is(err, ErrLost) {
				t.Errorf("%s: %v", verb, err)
			}
		}
		l := c.Mutex("e", nil).Locker(t.Context())
		l.Lock()
		if p := panicOf(l.Unlock); p != nil {
			t.Errorf("a Locker panics with %v", p)
		}
		on(h, &h.release, h.Driver.Release)
	})
}

// The cause of a loss may be an UnavailableError, because a driver may know that a session ended for want of its
// server. The loss stays a loss.
func TestDo_OfAHoldThatTheEngineSaysIsLost_SaysSoWhateverTheCause(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.release, func(_ context.Context, r *driver.Release) error {
			return &LostError{Kind: r.Kind, Name: r.Name, Reason: LostSession, Cause: &UnavailableError{}}
		})
		wantLost(t, c.Do(t.Context(), "a", func(context.Context) error { return nil }), LostSession)
		on(h, &h.release, h.Driver.Release)
	})
}

func TestCountDown_ThatIsRefusedAfterAnAttemptWithoutAnswer_IsUnknown(t *testing.T) {
	for unanswered, want := range map[int]bool{0: true, 1: false} {
		synctest.Test(t, func(t *testing.T) {
			d := memlock.New(nil)
			defer d.Close()
			rules := []faulty.Rule{{Op: faulty.CountDown, Err: errNoRights}}
			if unanswered > 0 {
				rules = append([]faulty.Rule{{Op: faulty.CountDown, Count: unanswered, Drop: faulty.Reply}}, rules...)
			}
			refusing, _ := faulty.Wrap(d, 1, rules...)
			c := mustNew(t, refusing, nil)
			defer c.Close()
			mustSet(t, c.Latch("a"), 2)
			begin := time.Now()
			_, err := c.Latch("a").CountDown(t.Context())
			if got := driver.Refusal(err) != nil; got != want || err == nil || time.Since(begin) > time.Second {
				t.Errorf("after %d attempts without an answer: %v", unanswered, err)
			}
		})
	}
}

// With a round trip that is longer than the lease, each grant is over when it comes. A try says so after the second,
// and leaves nothing; a wait says so when its time is over.
func TestTryLock_FartherFromTheEngineThanALeaseLasts_EndsAndSaysSo(t *testing.T) {
	for name, try := range map[string]func(*Client, context.Context) (*Lease, error){
		"mutex": func(c *Client, ctx context.Context) (*Lease, error) { return c.TryLock(ctx, "a") },
		"permit": func(c *Client, ctx context.Context) (*Lease, error) {
			return c.Semaphore("a", 1, nil).TryAcquire(ctx, 1)
		},
		"a named owner": func(c *Client, ctx context.Context) (*Lease, error) {
			return c.TryLock(WithOwner(ctx, "me"), "a")
		},
		"a wait": func(c *Client, ctx context.Context) (*Lease, error) {
			ctx, cancel := context.WithTimeout(ctx, 20*second)
			defer cancel()
			return c.Lock(ctx, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c := mustNew(t, leading{h}, &Options{Lease: time.Second})
				defer c.Close()
				on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
					g, err := h.Driver.Acquire(context.WithoutCancel(ctx), r)
					time.Sleep(1500 * time.Millisecond)
					return g, err
				})
				_, err := try(c, t.Context())
				wantErr(t, name, err, ErrUnavailable)
				if !strings.Contains(err.Error(), "a lease of 1s, which was over before the answer came after 1.5s") {
					t.Errorf("got %v", err)
				}
				if n := h.acquires.Load(); name != "a wait" && n != 2 {
					t.Errorf("asked %d times", n)
				}
				on(h, &h.acquire, h.Driver.Acquire)
				synctest.Wait()
				time.Sleep(2 * second)
				mustUnlock(t, must(t)(peer(t, h, nil).TryLock(t.Context(), "a")))
			})
		})
	}
}
