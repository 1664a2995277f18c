package interlocktest

import (
	"context"
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// The driver between a client and the store's memory (memlock): every request passes by the faults, before it is
// carried out and after.

// link is one client's way to the store. Methods that it does not define go through unchanged.
type link struct {
	*memlock.Driver
	store *Store
}

// Traits returns the traits of an engine over a network. Requests can fail and take time, so the client must not make
// them in the way of a local engine.
func (l *link) Traits() driver.Traits {
	traits := l.Driver.Traits()
	traits.Local = false
	return traits
}

// before counts a request, delays it, and returns the error if it does not arrive.
func (l *link) before(ctx context.Context, op, name string) error {
	l.store.count(op, 1)
	if delay := l.store.present().delay; delay > 0 {
		late := time.NewTimer(delay)
		defer late.Stop()
		select {
		case <-late.C:
		case <-ctx.Done():
			return &driver.UnavailableError{Op: op, Name: name, Err: ctx.Err()}
		}
	}
	if l.store.present().down {
		return &driver.UnavailableError{Op: op, Name: name, Err: errDown}
	}
	return nil
}

// after returns the error if the reply to a request is lost. The request was carried out.
func (l *link) after(op, name string) error {
	switch f := l.store.present(); {
	case f.down:
		return &driver.UnavailableError{Op: op, Name: name, Err: errDown}
	case f.lost[opOf(op)]:
		return &driver.UnavailableError{Op: op, Name: name, Err: errLost}
	}
	return nil
}

// ask runs a request between before and after.
func ask[T any](ctx context.Context, l *link, op, name string, request func() (T, error)) (T, error) {
	var none T
	if err := l.before(ctx, op, name); err != nil {
		return none, err
	}
	answer, err := request()
	if lost := l.after(op, name); lost != nil {
		return none, lost
	}
	return answer, err
}

// do is ask for requests without an answer.
func (l *link) do(ctx context.Context, op, name string, request func() error) error {
	_, err := ask(ctx, l, op, name, func() (struct{}, error) { return struct{}{}, request() })
	return err
}

// Acquire fails as all requests do.
func (l *link) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return ask(ctx, l, "acquire", r.Name, func() (driver.Grant, error) { return l.Driver.Acquire(ctx, r) })
}

// Requeue fails as all requests do.
func (l *link) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	return ask(ctx, l, "acquire", r.Name, func() (driver.Grant, error) { return l.Driver.Requeue(ctx, give, r) })
}

// AcquireAll fails as all requests do.
func (l *link) AcquireAll(ctx context.Context, requests []*driver.Request) ([]driver.Grant, error) {
	return ask(ctx, l, "acquire", requests[0].Name,
		func() ([]driver.Grant, error) { return l.Driver.AcquireAll(ctx, requests) })
}

// Convert fails as all requests do.
func (l *link) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	return ask(ctx, l, "convert", r.Name, func() (driver.Grant, error) { return l.Driver.Convert(ctx, beside, r) })
}

// Adopt fails as all requests do.
func (l *link) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	return ask(ctx, l, "adopt", r.Name, func() (driver.Grant, error) { return l.Driver.Adopt(ctx, from, r) })
}

// Resize fails as all requests do.
func (l *link) Resize(ctx context.Context, key driver.Key, limit int) error {
	return l.do(ctx, "resize", key.Name, func() error { return l.Driver.Resize(ctx, key, limit) })
}

// CondWait fails as all requests do.
func (l *link) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	return ask(ctx, l, "wait", r.Name, func() (driver.Grant, error) { return l.Driver.CondWait(ctx, give, r, parked) })
}

// CondSignal fails as all requests do.
func (l *link) CondSignal(ctx context.Context, c *driver.Signal) error {
	return l.do(ctx, "signal", c.Name, func() error { return l.Driver.CondSignal(ctx, c) })
}

// SetLatch fails as all requests do.
func (l *link) SetLatch(ctx context.Context, c *driver.LatchCall) (bool, error) {
	return ask(ctx, l, "set", c.Name, func() (bool, error) { return l.Driver.SetLatch(ctx, c) })
}

// CountDown fails as all requests do.
func (l *link) CountDown(ctx context.Context, c *driver.LatchCall) (int64, error) {
	return ask(ctx, l, "count down", c.Name, func() (int64, error) { return l.Driver.CountDown(ctx, c) })
}

// LatchCount fails as all requests do.
func (l *link) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	return ask(ctx, l, "count", key.Name, func() (int64, error) { return l.Driver.LatchCount(ctx, key) })
}

// Release fails as all requests do.
func (l *link) Release(ctx context.Context, r *driver.Release) error {
	return l.do(ctx, "release", r.Name, func() error { return l.Driver.Release(ctx, r) })
}

// Look fails as all requests do.
func (l *link) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	return ask(ctx, l, "look", key.Name, func() (driver.LockInfo, error) { return l.Driver.Look(ctx, key) })
}

// Locks fails as all requests do.
func (l *link) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		if err := l.before(ctx, "list", prefix); err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		if err := l.after("list", prefix); err != nil {
			yield(driver.LockInfo{}, err)
			return
		}
		l.Driver.Locks(ctx, prefix)(yield)
	}
}

// Break fails as all requests do.
func (l *link) Break(ctx context.Context, key driver.Key, token uint64) error {
	return l.do(ctx, "break", key.Name, func() error { return l.Driver.Break(ctx, key, token) })
}

// Renew fails when the engine is down, and when renewals do. Renewals whose reply is lost are carried out. No renewal
// is delayed.
func (l *link) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	l.store.count("renew", len(batch))
	if f := l.store.present(); f.down || f.noRenewals {
		for i := range batch {
			done(i, &driver.UnavailableError{Op: "renew", Name: batch[i].Name, Err: errDown})
		}
		return
	}
	l.Driver.Renew(ctx, batch, func(i int, err error) {
		if lost := l.after("renew", batch[i].Name); lost != nil {
			err = lost
		}
		done(i, err)
	})
}
