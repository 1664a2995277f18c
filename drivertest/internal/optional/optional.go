// Package optional helps drivers that wrap others: what the inner driver does not have, the wrapper does not offer.
//
// There are two sorts of optional interfaces. Whoever finds no Renewer, Inspector, Breaker or Diagnoser says
// driver.ErrUnsupported, so a wrapper may have them always and say so itself, see [Complete]. But a Requeuer is asked in
// place of something else as soon as it is there, so a wrapper must not be one in vain, see [Show].
package optional

import (
	"context"
	"iter"

	"github.com/interlock-go/interlock/driver"
)

// All is a driver with every optional interface.
type All interface {
	driver.Driver
	driver.Renewer
	driver.Requeuer
	driver.Inspector
	driver.Breaker
	driver.Diagnoser
}

// Requeues reports whether d is a driver.Requeuer.
func Requeues(d driver.Driver) bool {
	_, has := d.(driver.Requeuer)
	return has
}

// Show returns w, as a driver.Requeuer only if it requeues.
func Show(w All, requeues bool) driver.Driver {
	if requeues {
		return w
	}
	return common{w, w, w, w, w}
}

// common is what every wrapper has.
type common struct {
	driver.Driver
	driver.Renewer
	driver.Inspector
	driver.Breaker
	driver.Diagnoser
}

// Complete returns d with every optional interface. Those that d does not have answer driver.ErrUnsupported, and find
// nothing.
func Complete(d driver.Driver) All { return complete{d} }

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
