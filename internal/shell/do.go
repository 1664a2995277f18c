package shell

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// doUnder is Do of every kind of lock. A function that is missing is an error before anything is taken.
func DoUnder(ctx context.Context, m *core.Lock, fn func(ctx context.Context) error) error {
	if err := mayAcquire(ctx, m); err != nil {
		return err
	}
	if fn == nil {
		return Wrap("do under", m.Key(), ErrNoFunction)
	}
	lease, err := Acquire(ctx, m, false)
	if err != nil {
		return err
	}
	return doHolding(ctx, lease, fn)
}

// tryDoUnder is TryDo of every kind of lock.
func TryDoUnder(ctx context.Context, m *core.Lock, fn func(ctx context.Context) error) (bool, error) {
	lease, err := Acquire(ctx, m, true)
	if errors.Is(err, driver.ErrHeld) && driver.IsDefinite(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fn == nil { // a caller that only asks whether the work would be skipped has got its answer above
		return false, errors.Join(Wrap("do under", m.Key(), ErrNoFunction), UnlockInTime(ctx, lease))
	}
	return true, doHolding(ctx, lease, fn)
}
