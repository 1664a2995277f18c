package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// doUnder is Do of every kind of lock. A function that is missing is an error before anything is taken.
func doUnder(ctx context.Context, m *core.Lock, fn func(ctx context.Context) error) error {
	if err := mayAcquire(ctx, m); err != nil {
		return err
	}
	if fn == nil {
		return wrap("do under", m.Key(), errNoFunction)
	}
	lease, err := acquire(ctx, m, false)
	if err != nil {
		return err
	}
	return doHolding(ctx, lease, fn)
}

// tryDoUnder is TryDo of every kind of lock.
func tryDoUnder(ctx context.Context, m *core.Lock, fn func(ctx context.Context) error) (bool, error) {
	lease, err := acquire(ctx, m, true)
	if errors.Is(err, ErrHeld) && driver.IsDefinite(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fn == nil { // a caller that only asks whether the work would be skipped has got its answer above
		return false, errors.Join(wrap("do under", m.Key(), errNoFunction), unlockInTime(ctx, lease))
	}
	return true, doHolding(ctx, lease, fn)
}
