package interlock

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

func TestResize_LetsInWhoWaits_AndTakesNothingAway(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, s := t.Context(), c.Semaphore("x", 2, nil)
		one, two := must(t)(s.Acquire(ctx, 1)), must(t)(s.Acquire(ctx, 1))
		third := later(func() (*Lease, error) { return s.Acquire(ctx, 1) })
		synctest.Wait()
		stillWaits(t, third, "with both permits out")
		wantErr(t, "resize to three", s.Resize(ctx, 3), nil)
		three := must(t)((<-third).lease, nil)

		wantErr(t, "resize to one", s.Resize(ctx, 1), nil)
		for _, l := range []*Lease{one, two, three} {
			if l.Err() != nil {
				t.Errorf("a permit that was held says %v", l.Err())
			}
		}
		fourth := later(func() (*Lease, error) { return s.Acquire(ctx, 1) })
		synctest.Wait()
		mustUnlock(t, one)
		mustUnlock(t, two)
		time.Sleep(3 * defaultLease)
		stillWaits(t, fourth, "with one permit of one out")
		mustUnlock(t, three)
		mustUnlock(t, must(t)((<-fourth).lease, nil))

		fifth := must(t)(s.Acquire(ctx, 1))
		_, err := peer(t, h, nil).Semaphore("x", 2, nil).TryAcquire(ctx, 1)
		wantErr(t, "a request with the old limit", err, ErrConflict)
		_, err = s.TryAcquire(ctx, 2)
		wantText(t, "two permits of one", err, "at most its limit of 1")
		mustUnlock(t, fifth)
	})
}

// wantText fails unless err says text.
func wantText(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("%s: %v, want an error that says %q", what, err, text)
	}
}

func TestResize_BelowWhatSomebodyWaitsFor_IsAConflict(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		ctx, s := t.Context(), c.Semaphore("x", 3, nil)
		one := must(t)(s.Acquire(ctx, 1))
		big := later(func() (*Lease, error) { return s.Acquire(ctx, 3) })
		synctest.Wait()
		wantErr(t, "resize to two", s.Resize(ctx, 2), ErrConflict)
		mustUnlock(t, one)
		mustUnlock(t, must(t)((<-big).lease, nil))
		wantErr(t, "resize of what nobody uses", s.Resize(ctx, 2), nil)
		mustUnlock(t, must(t)(s.Acquire(ctx, 2)))
	})
}

func TestResize_RefusesWhatCannotBe(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		ctx := t.Context()
		var zero Semaphore
		wantErr(t, "the zero value", zero.Resize(ctx, 1), errNoSemaphore)
		wantText(t, "a limit of none", c.Semaphore("x", 1, nil).Resize(ctx, 0), "the limit 0 must be at least 1")
		err := c.Semaphore("x", 1, nil).Resize(nil, 1) //nolint:staticcheck // on purpose
		wantErr(t, "no context", err, shell.ErrNilContext)
		wantText(t, "a bad name", c.Semaphore("", 1, nil).Resize(ctx, 1), "name")
	})
}

// fixed is an engine without Resizer: semaphores in use keep their limit.
type fixed struct{ driver.Driver }

func (f fixed) Traits() driver.Traits {
	t := f.Driver.Traits()
	t.Unsupported = append(t.Unsupported, driver.Unsupported{Ability: driver.Resizing, Reason: "it is carved in stone"})
	return t
}

func (f fixed) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	f.Driver.(driver.Renewer).Renew(ctx, batch, done)
}

func TestResize_OnAnEngineThatCannot_SaysWhy(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, fixed{h}, nil)
		defer func() { _ = c.Close() }()
		err := c.Semaphore("x", 2, nil).Resize(t.Context(), 3)
		wantErr(t, "resize", err, ErrUnsupported)
		wantText(t, "resize", err, `resize "x": not supported by this engine (memory: it is carved in stone)`)
	})
}

// The engine has the new limit before or after the semaphore asks with it. What one program asks in between is asked
// again, with the limit that counts then; what others ask with a limit of their own is a conflict.
func TestResize_OfAProgramsOwnSemaphore_FailsNoneOfItsRequests(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		d := &resizable{hooks: h}
		c := mustNew(t, d, nil)
		defer c.Close()
		ctx := t.Context()
		s, others := c.Semaphore("x", 2, nil), c.Semaphore("x", 2, nil)
		held := must(t)(s.Acquire(ctx, 1))

		// The engine has the new limit, and its answer is still under way.
		d.answer = make(chan struct{})
		resized := make(chan error, 1)
		go func() { resized <- s.Resize(ctx, 3) }()
		synctest.Wait()
		asked := later(func() (*Lease, error) { return s.TryAcquire(ctx, 1) })
		stillWaits(t, asked, "before the resize is answered")
		_, err := others.TryAcquire(ctx, 1)
		wantErr(t, "with a limit of its own", err, ErrConflict)
		close(d.answer)
		wantErr(t, "resize", <-resized, nil)
		mustUnlock(t, must(t)((<-asked).lease, nil))

		// A request crosses a whole resize on its way.
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			on(h, &h.acquire, h.Driver.Acquire)
			wantErr(t, "resize", s.Resize(ctx, 4), nil)
			return h.Driver.Acquire(ctx, r)
		})
		many := must(t)(s.Acquire(ctx, 2))
		mustUnlock(t, many)
		mustUnlock(t, held)
	})
}

// resizable is an engine whose answers to a change of the limit can be held up.
type resizable struct {
	*hooks
	answer chan struct{}
}

func (r *resizable) Resize(ctx context.Context, key driver.Key, limit int) error {
	err := r.Driver.Resize(ctx, key, limit)
	if r.answer != nil {
		<-r.answer
	}
	return err
}
