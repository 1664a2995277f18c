// Package optional helps drivers that wrap others: what the inner driver does not have, the wrapper does not offer.
//
// There are two sorts of optional interfaces. A caller that finds no Renewer, Inspector, Breaker, Diagnoser and so on
// says driver.ErrUnsupported, and a MultiAcquirer that says so is not asked for more. So a wrapper may always have
// these and say so itself, see [Complete]. A Reconnector may also tell of nothing. But a Requeuer or Watcher is asked
// in place of something else as soon as it is there. With a Converter more is offered to users. So a wrapper must not
// be one of these in vain, see [Show].
package optional

import (
	"context"
	"iter"

	"github.com/interlock-go/interlock/driver"
)

// Set says which of the interfaces that a wrapper must not have in vain a driver has.
type Set uint8

const (
	requeue Set = 1 << iota
	convert
	watch
)

// All is a driver with every optional interface.
type All interface {
	driver.Driver
	driver.Renewer
	driver.Requeuer
	driver.MultiAcquirer
	driver.Converter
	driver.Adopter
	driver.Resizer
	driver.Inspector
	driver.Looker
	driver.Watcher
	driver.Breaker
	driver.Latcher
	driver.Conder
	driver.Diagnoser
	driver.Reconnector
}

// Of returns the set of d.
func Of(d driver.Driver) (set Set) {
	if _, has := d.(driver.Requeuer); has {
		set |= requeue
	}
	if _, has := d.(driver.Converter); has {
		set |= convert
	}
	if _, has := d.(driver.Watcher); has {
		set |= watch
	}
	return set
}

// Show returns w without the interfaces that are not in set. A method set is fixed when a type is compiled, so each
// combination needs a type of its own; this is the whole table.
func Show(w All, set Set) driver.Driver {
	type (
		q = driver.Requeuer
		x = driver.Converter
		o = driver.Watcher
	)
	always := common{w, w, w, w, w, w, w, w, w, w, w, w}
	switch set {
	case requeue:
		return struct {
			common
			q
		}{always, w}
	case convert:
		return struct {
			common
			x
		}{always, w}
	case watch:
		return struct {
			common
			o
		}{always, w}
	case requeue | convert:
		return struct {
			common
			q
			x
		}{always, w, w}
	case requeue | watch:
		return struct {
			common
			q
			o
		}{always, w, w}
	case convert | watch:
		return struct {
			common
			x
			o
		}{always, w, w}
	case requeue | convert | watch:
		return w
	}
	return always
}

// common is what every wrapper has.
type common struct {
	driver.Driver
	driver.Renewer
	driver.MultiAcquirer
	driver.Adopter
	driver.Resizer
	driver.Inspector
	driver.Looker
	driver.Breaker
	driver.Latcher
	driver.Conder
	driver.Diagnoser
	driver.Reconnector
}

// Complete returns d with every optional interface. Those that d does not have answer driver.ErrUnsupported, and find
// nothing.
func Complete(d driver.Driver) All { return complete{d} }

// complete answers for what the inner driver lacks.
type complete struct{ driver.Driver }

func (c complete) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	if inner, has := c.Driver.(driver.Renewer); has {
		inner.Renew(ctx, batch, done)
		return
	}
	for i := range batch {
		done(i, driver.ErrUnsupported)
	}
}

func (c complete) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if inner, has := c.Driver.(driver.Requeuer); has {
		return inner.Requeue(ctx, give, r)
	}
	return driver.Grant{}, driver.ErrUnsupported
}

func (c complete) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	if inner, has := c.Driver.(driver.Converter); has {
		return inner.Convert(ctx, beside, r)
	}
	return driver.Grant{}, driver.ErrUnsupported
}

func (c complete) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	if inner, has := c.Driver.(driver.Inspector); has {
		return inner.Locks(ctx, prefix)
	}
	return func(yield func(driver.LockInfo, error) bool) { yield(driver.LockInfo{}, driver.ErrUnsupported) }
}

func (c complete) Break(ctx context.Context, key driver.Key, token uint64) error {
	if inner, has := c.Driver.(driver.Breaker); has {
		return inner.Break(ctx, key, token)
	}
	return driver.ErrUnsupported
}

func (c complete) Diagnose(ctx context.Context) []driver.Finding {
	if inner, has := c.Driver.(driver.Diagnoser); has {
		return inner.Diagnose(ctx)
	}
	return nil
}

// The methods of complete for the other interfaces; optional.go has the first ones, and the reason.

func (c complete) AcquireAll(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
	if inner, has := c.Driver.(driver.MultiAcquirer); has {
		return inner.AcquireAll(ctx, rs)
	}
	return nil, driver.ErrUnsupported
}

func (c complete) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	if inner, has := c.Driver.(driver.Adopter); has {
		return inner.Adopt(ctx, from, r)
	}
	return driver.Grant{}, driver.ErrUnsupported
}

func (c complete) Resize(ctx context.Context, key driver.Key, limit int) error {
	if inner, has := c.Driver.(driver.Resizer); has {
		return inner.Resize(ctx, key, limit)
	}
	return driver.ErrUnsupported
}

func (c complete) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	return driver.Look(ctx, c.Driver, key)
}

func (c complete) Watch(ctx context.Context, key driver.Key, changed func()) error {
	if inner, has := c.Driver.(driver.Watcher); has {
		return inner.Watch(ctx, key, changed)
	}
	return driver.ErrUnsupported
}

func (c complete) SetLatch(ctx context.Context, l *driver.LatchCall) (bool, error) {
	if inner, has := c.Driver.(driver.Latcher); has {
		return inner.SetLatch(ctx, l)
	}
	return false, driver.ErrUnsupported
}

func (c complete) CountDown(ctx context.Context, l *driver.LatchCall) (int64, error) {
	if inner, has := c.Driver.(driver.Latcher); has {
		return inner.CountDown(ctx, l)
	}
	return 0, driver.ErrUnsupported
}

func (c complete) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	if inner, has := c.Driver.(driver.Latcher); has {
		return inner.LatchCount(ctx, key)
	}
	return 0, driver.ErrUnsupported
}

func (c complete) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	if inner, has := c.Driver.(driver.Conder); has {
		return inner.CondWait(ctx, give, r, parked)
	}
	return driver.Grant{}, driver.ErrUnsupported
}

func (c complete) CondSignal(ctx context.Context, s *driver.Signal) error {
	if inner, has := c.Driver.(driver.Conder); has {
		return inner.CondSignal(ctx, s)
	}
	return driver.ErrUnsupported
}

func (c complete) OnReconnect(f func()) (stop func()) {
	if inner, has := c.Driver.(driver.Reconnector); has {
		return inner.OnReconnect(f)
	}
	return func() {}
}
