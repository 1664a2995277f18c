package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// wantWaited checks that err is of a wait that LockOptions.Wait ended after d: held, and no context's error.
func wantWaited(t *testing.T, what string, err error, d time.Duration) {
	t.Helper()
	var held *HeldError
	if !errors.As(err, &held) || !errors.Is(err, ErrHeld) {
		t.Errorf("%s: got %v, want a *HeldError", what, err)
		return
	}
	if held.Waited != d || held.Cause != nil || !strings.Contains(err.Error(), "waited "+d.String()) {
		t.Errorf("%s: waited %v, cause %v: %v", what, held.Waited, held.Cause, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("%s: matches more than held: %v", what, err)
	}
}

func TestWait_BoundsEachCallThatWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		wait := &LockOptions{Wait: 3 * time.Second}
		for _, name := range []string{"a", "b"} {
			defer mustUnlock(t, mustLock(t, t.Context(), other, name))
		}
		defer mustUnlock(t, must(t)(other.RWMutex("a", nil).RLock(t.Context())))
		defer mustUnlock(t, must(t)(other.Semaphore("a", 1, nil).Acquire(t.Context(), 1)))
		defer mustUnlock(t, must(t)(other.Election("a", nil).Campaign(t.Context(), "")))
		up := must(t)(c.RWMutex("a", wait).UpgradeableRLock(t.Context()))
		defer mustUnlock(t, up)
		sem, leader, both := c.Semaphore("a", 1, wait), c.Election("a", wait), c.Multi([]string{"a", "b"}, wait)
		m, named := c.Mutex("a", wait), func(ctx context.Context) context.Context { return WithOwner(ctx, "me") }
		never := func(context.Context) error { t.Error("the work ran"); return nil }
		for what, call := range map[string]func(ctx context.Context) error{
			"Lock":            func(ctx context.Context) error { return errOf(m.Lock(ctx)) },
			"Do":              func(ctx context.Context) error { return m.Do(ctx, never) },
			"RWMutex.Lock":    func(ctx context.Context) error { return errOf(c.RWMutex("a", wait).Lock(ctx)) },
			"Upgrade":         up.Upgrade,
			"Acquire":         func(ctx context.Context) error { return errOf(sem.Acquire(ctx, 1)) },
			"Semaphore.Do":    func(ctx context.Context) error { return sem.Do(ctx, 1, never) },
			"Campaign":        func(ctx context.Context) error { return errOf(leader.Campaign(ctx, "")) },
			"Multi.Lock":      func(ctx context.Context) error { return errOf(both.Lock(ctx)) },
			"a named owner's": func(ctx context.Context) error { return errOf(m.Lock(named(ctx))) },
		} {
			start := time.Now()
			wantWaited(t, what, call(t.Context()), 3*time.Second)
			if d := time.Since(start); d != 3*time.Second {
				t.Errorf("%s took %v", what, d)
			}
		}
	})
}

func TestWait_OfAMulti_IsForAllTogether(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		first, second := mustLock(t, t.Context(), other, "a"), mustLock(t, t.Context(), other, "b")
		time.AfterFunc(2*time.Second, func() { mustUnlock(t, first) })
		start := time.Now()
		_, err := c.Multi([]string{"a", "b"}, &LockOptions{Wait: 3 * time.Second}).Lock(t.Context())
		if !errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		mustUnlock(t, mustLock(t, t.Context(), other, "a")) // given back
		mustUnlock(t, second)
	})
}

func TestWait_BehindAnEngineThatDoesNotAnswer_IsUnavailable(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, _ *driver.Request) (driver.Grant, error) {
			<-ctx.Done()
			return driver.Grant{}, ctx.Err()
		})
		_, err := c.Mutex("a", &LockOptions{Wait: time.Second}).Lock(t.Context())
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "LockOptions.Wait") {
			t.Errorf("got %v", err)
		}
		on(h, &h.acquire, h.Driver.Acquire)
	})
}

func TestWait_IsNoContext(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		held := mustLock(t, t.Context(), peer(t, h, nil), "a")
		m := c.Mutex("a", &LockOptions{Wait: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		// The caller's context ended first, so its error is what the caller gets.
		var was *HeldError
		_, ended := m.Lock(ctx)
		if !errors.Is(ended, context.DeadlineExceeded) || !errors.As(ended, &was) || was.Waited != 0 {
			t.Errorf("got %v", ended)
		}
		mustUnlock(t, held)
		// The work is not bounded.
		err := m.Do(t.Context(), func(ctx context.Context) error {
			time.Sleep(2 * time.Minute) // virtual
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
		if _, err := c.Mutex("a", &LockOptions{Wait: -1}).Lock(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "must not be negative") {
			t.Errorf("a negative Wait: %v", err)
		}
	})
}
