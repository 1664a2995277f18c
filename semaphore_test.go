package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestSemaphore_GivesOutItsPermitsInTurn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, s, other := t.Context(), c.Semaphore("x", 3, nil), peer(t, h, nil).Semaphore("x", 3, nil)
		two, one := must(t)(s.Acquire(ctx, 2)), must(t)(other.TryAcquire(ctx, 1))
		if _, ok := two.Stamp(); ok || two.Kind() != KindSemaphore || two.Token() == 0 {
			t.Errorf("the stamp says %v, %s, token %d", ok, two.Kind(), two.Token())
		}
		_, err := s.TryAcquire(ctx, 1)
		wantErr(t, "a try without a free permit", err, ErrHeld)
		big := later(func() (*Lease, error) { return other.Acquire(ctx, 3) })
		synctest.Wait()
		small := later(func() (*Lease, error) { return s.Acquire(ctx, 1) })
		mustUnlock(t, two)
		stillWaits(t, small, "behind a big request")
		time.Sleep(3 * defaultLease)
		stillWaits(t, big, "with a permit out, which is renewed")
		mustUnlock(t, one)
		b := must(t)((<-big).lease, nil)
		stillWaits(t, small, "with all permits out")
		mustUnlock(t, b)
		wantErr(t, "a second Unlock", b.Unlock(ctx), ErrReleased)
		mustUnlock(t, must(t)((<-small).lease, nil))
		mustUnlock(t, must(t)(s.TryAcquire(ctx, 3)))
		if len(c.in().EngineHolds) != 0 || len(c.in().LinesOfOne) != 0 {
			t.Errorf("%d grants and %d waiters are left", len(c.in().EngineHolds), len(c.in().LinesOfOne))
		}
	})
}

func TestSemaphore_WithOnePermit_HasAStamp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := must(t)(c.Semaphore("x", 1, nil).Acquire(t.Context(), 1))
		if isShared(t, l) {
			t.Error("it says shared")
		}
		mustUnlock(t, l)
		if _, ok := l.Stamp(); ok {
			t.Error("there is a stamp after the release")
		}
	})
}

func TestSemaphore_IsNotReentrant(t *testing.T) {
	for name, owner := range map[string]func(*Lease) context.Context{
		"anonymous": func(l *Lease) context.Context { return l.Context(context.Background()) },
		"named":     func(*Lease) context.Context { return WithOwner(context.Background(), "order-7") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
				s := c.Semaphore("x", 2, nil)
				ctx := owner(mustLock(t, t.Context(), c, "another"))
				one, two := must(t)(s.Acquire(ctx, 1)), must(t)(s.Acquire(ctx, 1))
				_, err := s.TryAcquire(one.Context(ctx), 1)
				wantErr(t, "a third permit of two", err, ErrHeld)
				third := later(func() (*Lease, error) { return s.Acquire(ctx, 1) })
				stillWaits(t, third, "for one's own permit")
				mustUnlock(t, one)
				mustUnlock(t, must(t)((<-third).lease, nil))
				mustUnlock(t, two)
			})
		})
	}
}

func TestSemaphore_RefusesWhatCannotBe(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx := t.Context()
		for _, row := range []struct {
			limit, n int
			want     string
		}{
			{0, 1, `semaphore "x": the limit 0 must be at least 1`},
			{-2, 1, `semaphore "x": the limit -2 must be at least 1`},
			{0, 0, `semaphore "x": the limit 0 must be at least 1`},
			{3, 0, `semaphore "x": 0 permits were asked for; it must be at least 1, and at most its limit of 3`},
			{3, -1, `semaphore "x": -1 permits were asked for`},
			{3, 4, `semaphore "x": 4 permits were asked for; it must be at least 1, and at most its limit of 3`},
		} {
			l, err := c.Semaphore("x", row.limit, nil).TryAcquire(ctx, row.n)
			if l != nil || err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%d of %d: %v, want %q", row.n, row.limit, err, row.want)
			}
		}
		if h.acquires.Load() != 0 {
			t.Errorf("the engine was asked %d times", h.acquires.Load())
		}
	})
}

func TestSemaphore_AnotherLimitWhileInUse_IsAConflictThatNamesBoth(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, other := t.Context(), peer(t, h, nil)
		l := must(t)(c.Semaphore("x", 3, nil).Acquire(ctx, 1))
		_, err := other.Semaphore("x", 4, nil).Acquire(ctx, 1)
		wantErr(t, "another limit", err, ErrConflict)
		if !strings.Contains(err.Error(), "3") || !strings.Contains(err.Error(), "4") {
			t.Errorf("the error does not name both limits: %v", err)
		}
		mustUnlock(t, l)
		mustUnlock(t, must(t)(other.Semaphore("x", 4, nil).Acquire(ctx, 4)))
		mutex := mustLock(t, ctx, c, "x")
		mustUnlock(t, must(t)(other.Semaphore("x", 2, nil).Acquire(ctx, 2)))
		mustUnlock(t, mutex)
	})
}

func TestSemaphore_ACrashedHoldersPermitsComeBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, s := t.Context(), c.Semaphore("x", 2, nil)
		must(t)(s.Acquire(ctx, 1))
		on(h, &h.renew, noRenewals)
		on(h, &h.release, func(context.Context, *driver.Release) error {
			return &UnavailableError{Err: errors.New("crashed")}
		})
		other := peer(t, h, nil).Semaphore("x", 2, nil)
		start := time.Now()
		l := must(t)(other.Acquire(ctx, 2))
		if waited := time.Since(start); waited > defaultLease {
			t.Errorf("the permits came back after %v, the lease is %v", waited, defaultLease)
		}
		mustUnlock(t, l)
	})
}

func TestSemaphore_AWaitThatIsGivenUp_LeavesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		s, other := c.Semaphore("x", 2, nil), peer(t, h, nil).Semaphore("x", 2, nil)
		l := must(t)(other.Acquire(t.Context(), 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		big := later(func() (*Lease, error) { return s.Acquire(ctx, 2) })
		synctest.Wait()
		small := later(func() (*Lease, error) { return other.Acquire(t.Context(), 1) })
		stillWaits(t, small, "behind a big request")
		got := <-big
		wantErr(t, "the wait", got.err, ErrHeld)
		wantErr(t, "the wait", got.err, context.DeadlineExceeded)
		mustUnlock(t, must(t)((<-small).lease, nil))
		mustUnlock(t, l)
	})
}
