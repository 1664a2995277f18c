package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// leading is an engine with Traits.Resumes: a wait can be left and taken up again. So callers ask it in their own
// goroutines.
type leading struct{ *hooks }

func (l leading) Traits() driver.Traits {
	t := l.hooks.Traits()
	t.Resumes = true
	return t
}

// Client libraries put the deadline of a context on their sockets, and say that it is over an instant before the
// context does. The goroutines that wait behind must not get that error, so no driver is shown the deadline.
func TestLeader_WhoseTimeIsOver_EndsItsOwnWaitOnly(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, leading{h}, nil)
		defer c.Close()
		held := mustLock(t, t.Context(), c, "a")
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			if deadline, has := ctx.Deadline(); has {
				time.Sleep(time.Until(deadline) - time.Nanosecond)
				return driver.Grant{}, context.DeadlineExceeded
			}
			return h.Driver.Acquire(ctx, r)
		})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		leader := lockLater(short, c, "a")
		synctest.Wait()
		other := lockLater(t.Context(), c, "a")
		if got := <-leader; got.err == nil {
			t.Error("the leader got the lock beside its holder")
		}
		synctest.Wait()
		mustUnlock(t, held)
		got := <-other
		if got.err != nil {
			t.Fatalf("the other, whose context goes on: %v", got.err)
		}
		mustUnlock(t, got.lease)
	})
}

func TestUnlock_OfADriverThatLooksOnlyAtErr_TriesAgainInTime(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		first := true
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			if !first {
				return h.Driver.Release(ctx, r)
			}
			first = false
			for range 1000 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				time.Sleep(20 * time.Millisecond)
			}
			return context.DeadlineExceeded
		})
		begin := time.Now()
		if err := l.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > shell.SettleAttempt+time.Second {
			t.Errorf("the first attempt to release took %v", took)
		}
	})
}

// answerError is the end of a context, told by what the engine had answered before: as package conn of redislock does.
type answerError struct{ end, answer error }

func (e *answerError) Error() string   { return e.answer.Error() }
func (e *answerError) Unwrap() []error { return []error{e.end, e.answer} }

// An engine that turned a request away until its caller had no time left says why, and that nothing was sent: the end
// of the time hides neither, be it of the caller's context or of LockOptions.Wait.
func TestLock_WhoseTimeEndsWhileItIsTurnedAway_SaysWhyAndThatNothingWasDone(t *testing.T) {
	busy := errors.New("last answer: BUSY")
	for name, lock := range map[string]func(*Client, context.Context) (*Lease, error){
		"Lock":    func(c *Client, ctx context.Context) (*Lease, error) { return c.Lock(ctx, "a") },
		"TryLock": func(c *Client, ctx context.Context) (*Lease, error) { return c.TryLock(ctx, "a") },
		"Wait": func(c *Client, ctx context.Context) (*Lease, error) {
			return c.Mutex("a", &LockOptions{Wait: second / 2}).Lock(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c := mustNew(t, leading{h}, nil)
				defer c.Close()
				on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
					<-ctx.Done()
					return driver.Grant{}, &UnavailableError{
						Op: "acquire", Name: r.Name, Err: &answerError{ctx.Err(), busy}, NotSent: true,
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), second)
				defer cancel()
				_, err := lock(c, ctx)
				bounded := name == "Wait"
				if strings.Count(err.Error(), "deadline exceeded") > 1 || strings.Count(err.Error(), "is over") > 1 {
					t.Errorf("says something twice: %v", err)
				}
				if !driver.IsNotSent(err) || !errors.Is(err, busy) || !strings.Contains(err.Error(), busy.Error()) ||
					!strings.Contains(err.Error(), "nothing was done") ||
					strings.Contains(err.Error(), "LockOptions.Wait") != bounded ||
					errors.Is(err, context.DeadlineExceeded) == bounded {
					t.Errorf("got %v", err)
				}
				on(h, &h.acquire, h.Driver.Acquire)
			})
		})
	}
}

// The driver's error is often the end of the caller's context, which the error says once.
func TestLock_WhoseContextEndsBeforeAnythingIsSent_SaysSoOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, leading{h}, nil)
		defer c.Close()
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			<-ctx.Done()
			return driver.Grant{}, &UnavailableError{Op: "acquire", Name: r.Name, Err: ctx.Err(), NotSent: true}
		})
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		_, err := c.Lock(ctx, "a")
		if n := strings.Count(err.Error(), context.DeadlineExceeded.Error()); n != 1 {
			t.Errorf("says it %d times: %v", n, err)
		}
		on(h, &h.acquire, h.Driver.Acquire)
	})
}
