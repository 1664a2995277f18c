package interlock

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/internal/shell"
)

// Each kind of lock works under itself in the same way: the lock is held while the function runs, and free afterwards.
func TestDo_OfEachKind_HoldsTheLockWhileTheFunctionRuns(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		rw, sem, other := c.RWMutex("a", nil), c.Semaphore("a", 2, nil), peer(t, h, nil)
		failed := errors.New("failed")
		type f = func(context.Context) error
		given := func(l *Lease, err error) error {
			if err == nil {
				mustUnlock(t, l)
			}
			return err
		}
		refusedMutex := func(ctx context.Context) error { return given(other.TryLock(ctx, "a")) }
		refusedWrite := func(ctx context.Context) error { return given(other.RWMutex("a", nil).TryLock(ctx)) }
		otherSem := other.Semaphore("a", 2, nil)
		refusedPermit := func(ctx context.Context) error { return given(otherSem.TryAcquire(ctx, 1)) }
		clientTry := func(ctx context.Context, fn f) (bool, error) { return c.TryDo(ctx, "a", fn) }
		try := func(do func(context.Context, f) (bool, error)) func(context.Context, f) error {
			return func(ctx context.Context, fn f) error {
				ran, err := do(ctx, fn)
				if !ran && err == nil {
					t.Error("it did not run")
				}
				return err
			}
		}
		for what, kind := range map[string]struct {
			do      func(context.Context, f) error
			refused f
		}{
			"Client.Do":    {func(ctx context.Context, fn f) error { return c.Do(ctx, "a", fn) }, refusedMutex},
			"Client.TryDo": {try(clientTry), refusedMutex},
			"RWMutex.Do":   {rw.Do, refusedWrite}, "RWMutex.TryDo": {try(rw.TryDo), refusedWrite},
			"RWMutex.RDo": {rw.RDo, refusedWrite}, "RWMutex.TryRDo": {try(rw.TryRDo), refusedWrite},
			"Semaphore.Do": {func(ctx context.Context, fn f) error { return sem.Do(ctx, 2, fn) }, refusedPermit},
			"Semaphore.TryDo": {
				try(func(ctx context.Context, fn f) (bool, error) { return sem.TryDo(ctx, 2, fn) }), refusedPermit,
			},
		} {
			err := kind.do(t.Context(), func(context.Context) error {
				if err := kind.refused(t.Context()); !errors.Is(err, ErrHeld) {
					t.Errorf("%s: another owner meanwhile: %v", what, err)
				}
				return failed
			})
			if !errors.Is(err, failed) {
				t.Errorf("%s: got %v", what, err)
			}
			if err := kind.refused(t.Context()); err != nil {
				t.Errorf("%s: another owner afterwards: %v", what, err)
			}
			if err := kind.do(t.Context(), nil); !errors.Is(err, shell.ErrNoFunction) {
				t.Errorf("%s without a function: %v", what, err)
			}
		}
	})
}

func TestTryDo_OfEachKind_SkipsTheWorkWhileAnotherHolds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		mustLock(t, t.Context(), other, "a")
		must(t)(other.RWMutex("a", nil).Lock(t.Context()))
		must(t)(other.Semaphore("a", 2, nil).Acquire(t.Context(), 1))
		fn := func(context.Context) error { t.Error("the work ran"); return nil }
		for what, do := range map[string]func() (bool, error){
			"Client.TryDo":    func() (bool, error) { return c.TryDo(t.Context(), "a", fn) },
			"RWMutex.TryDo":   func() (bool, error) { return c.RWMutex("a", nil).TryDo(t.Context(), fn) },
			"RWMutex.TryRDo":  func() (bool, error) { return c.RWMutex("a", nil).TryRDo(t.Context(), fn) },
			"Semaphore.TryDo": func() (bool, error) { return c.Semaphore("a", 2, nil).TryDo(t.Context(), 2, fn) },
		} {
			if ran, err := do(); ran || err != nil {
				t.Errorf("%s: %v, %v", what, ran, err)
			}
		}
	})
}
