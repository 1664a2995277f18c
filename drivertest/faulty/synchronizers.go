package faulty

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Looks, watches, latches and conditions through the bad network; wrapped.go has the rest.

func (w *wrapped) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	return valued(ctx, w, Look, key.Name, func(ctx context.Context) (driver.LockInfo, error) {
		return w.d.Look(ctx, key)
	})
}

// Watch itself always reaches the engine; what it tells may get lost or be held up.
func (w *wrapped) Watch(ctx context.Context, key driver.Key, changed func()) error {
	return w.d.Watch(ctx, key, func() {
		if w.c.rule(Watch, key.Name).Drop == 0 {
			w.c.tell(changed)
		}
	})
}

func (w *wrapped) SetLatch(ctx context.Context, l *driver.LatchCall) (bool, error) {
	return valued(ctx, w, SetLatch, l.Name, func(ctx context.Context) (bool, error) { return w.d.SetLatch(ctx, l) })
}

func (w *wrapped) CountDown(ctx context.Context, l *driver.LatchCall) (int64, error) {
	return valued(ctx, w, CountDown, l.Name, func(ctx context.Context) (int64, error) { return w.d.CountDown(ctx, l) })
}

func (w *wrapped) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	return valued(ctx, w, LatchCount, key.Name, func(ctx context.Context) (int64, error) {
		return w.d.LatchCount(ctx, key)
	})
}

func (w *wrapped) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	return w.grant(ctx, CondWait, r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return w.d.CondWait(ctx, give, r, func() { w.c.tell(parked) })
	})
}

func (w *wrapped) CondSignal(ctx context.Context, s *driver.Signal) error {
	return w.plain(ctx, CondSignal, s.Name, func(ctx context.Context) error { return w.d.CondSignal(ctx, s) })
}

// valued makes a call that answers with a value.
func valued[T any](
	ctx context.Context, w *wrapped, op Op, name string, ask func(context.Context) (T, error),
) (answer T, err error) {
	first := true
	err = w.plain(ctx, op, name, func(ctx context.Context) error {
		got, err := ask(ctx)
		if first { // a copy, whose answer nobody sees, may come when this call has returned
			first, answer = false, got
		}
		return err
	})
	return answer, err
}
