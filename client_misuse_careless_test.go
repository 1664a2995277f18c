package interlock

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// A careless call returns an error that says in a sentence what is wrong. Nothing panics, nothing is taken, and nothing
// stays behind.
func TestCarelessCalls_GetAnErrorThatSaysWhatIsWrong(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m := c.Mutex("a", nil)
		for name, test := range map[string]struct {
			call func(ctx context.Context) error
			says string
			is   error
		}{
			"Do": {
				func(ctx context.Context) error { return c.Do(ctx, "a", nil) },
				"the function is nil", nil,
			},
			"TryDo": {
				func(ctx context.Context) error { return errOf(m.TryDo(ctx, nil)) },
				"the function is nil", nil,
			},
			"Multi.Do": {
				func(ctx context.Context) error { return c.Multi([]string{"a"}, nil).Do(ctx, nil) },
				"the function is nil", nil,
			},
			"Cond of nothing": {
				func(ctx context.Context) error { return c.Cond(nil).Signal(ctx) },
				"the mutex is nil", nil,
			},
			"Cond.Wait of it": {
				func(ctx context.Context) error { return errOf(c.Cond(nil).Wait(ctx, nil)) },
				"the mutex is nil", nil,
			},
			"Cond.Wait, no hold": {
				func(ctx context.Context) error { return errOf(c.Cond(m).Wait(ctx, nil)) },
				"the lease is nil", ErrNotHeld,
			},
			"Break of a latch": {
				func(ctx context.Context) error { return c.Break(ctx, KindLatch, "a", 1) },
				"nobody holds a lock of kind latch", ErrUnsupported,
			},
			"Break of nothing": {
				func(ctx context.Context) error { return c.Break(ctx, "lock", "a", 1) },
				`there is no kind of lock "lock"`, nil,
			},
		} {
			err := test.call(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.says) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%s: got %v, want %q", name, err, test.says)
			}
		}
		if n := h.acquires.Load(); n != 1 {
			t.Errorf("the engine was asked %d times for a lock, want once, by TryDo", n)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func errOf[T any](_ T, err error) error { return err }

// failing is an engine whose Locks yields an error.
type failing struct{ *hooks }

func (*failing) Locks(_ context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		yield(driver.LockInfo{}, &driver.UnavailableError{
			Op: "list", Name: prefix,
			Err: errors.New("connection reset"),
		})
	}
}

func TestLocks_OnAnEngineThatDoesNotAnswer_SaysSoOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, &failing{h}, nil)
		for _, prefix := range []string{"", "a"} {
			for _, err := range c.List(t.Context(), prefix) {
				if !errors.Is(err, ErrUnavailable) || strings.Count(err.Error(), "list") != 1 ||
					strings.Contains(err.Error(), `""`) {
					t.Errorf("%q: %v", prefix, err)
				}
			}
		}
		_ = c.Close()
	})
}

// Owners and clients choose their own names. A name with a line feed must not break the lines of another process's log.
func TestHeldError_IsOneLine(t *testing.T) {
	d := memlock.New(nil)
	defer func() { _ = d.Close() }()
	bad, good := mustNew(t, d, &Options{ClientName: "a\nb"}), mustNew(t, d.Peer(), nil)
	lease := must(t)(bad.Lock(WithOwner(t.Context(), "me\x1b[31m"), "a"))
	_, err := good.TryLock(t.Context(), "a")
	if !errors.Is(err, ErrHeld) || strings.ContainsAny(err.Error(), "\n\x1b") {
		t.Errorf("got %v", err)
	}
	mustUnlock(t, lease)
}
