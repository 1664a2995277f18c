package interlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Conditions: a second queue beside that of a mutex. internal/shell/condwait.go has the steps of a wait;
// docs/rationale.md, Conditions, the decision.

// Cond is the condition of a mutex, as sync.Cond is that of a sync.Mutex: Wait releases the mutex and blocks until
// another owner signals. Each mutex has one condition; all Conds of a mutex are the same. It is safe for concurrent
// use. The zero value cannot be used.
//
//	for lease.Err() == nil && !ready() {
//		next, err := cond.Wait(ctx, lease)
//		if err != nil {
//			return err // lease.Err says whether the old hold is left, see Wait
//		}
//		lease = next
//	}
//
// Check in a loop, as here: between the signal and the return of Wait another owner may have had the mutex.
type Cond struct {
	_   core.NoCopy
	m   *Mutex
	err error // reported by the first call
}

// Cond returns the condition of m, which must be a mutex of this client. It asks no engine. A mutex that is nil or
// another client's, and an engine without conditions (ErrUnsupported), are reported by its first call.
func (c *Client) Cond(m *Mutex) *Cond {
	s := c.in()
	if m == nil {
		return &Cond{err: errors.New("interlock: condition: the mutex is nil")}
	}
	cond := &Cond{m: m, err: cmp.Or(s.CheckMade(), shell.CheckLock(&m.lock))}
	if cond.err != nil {
		return cond
	}
	reason, lacks := s.Traits.LackingKind(driver.KindCond)
	_, can := s.Driver.(driver.Conder)
	switch {
	case shell.ClientOf(&m.lock) != s:
		cond.err = fmt.Errorf("interlock: condition of %q: the mutex is another client's", m.lock.Key().Name)
	case lacks:
		cond.err = shell.Wrap("condition of", m.lock.Key(), core.Unsupported(s.Traits, reason))
	case !can:
		cond.err = shell.Wrap(
			"condition of",
			m.lock.Key(),
			core.Unsupported(s.Traits, "its driver is no driver.Conder"),
		)
	}
	return cond
}

// Wait gives l up and waits for a signal, in one step, so that no signal falls in between. Then it takes the mutex
// again and returns the new hold, which has the same owner and a larger token. l ends as if it had been unlocked: use
// the contexts of the new hold. If the caller has another hold beside l, by re-entry, the error is ErrNested. If l is
// not a live hold of this mutex it is ErrNotHeld.
//
// A call that is wrong in itself changes nothing, and an l that was held is still held. Its errors are ErrNested,
// ErrNotHeld, and that of a nil ctx or of an l that nobody has made. [Client.Cond] leaves further ones to the first
// call. They are for a mutex that is nil, another client's or badly named, and for an engine without conditions
// (ErrUnsupported). After every other error nothing is held.
//
// A MinHold is kept. Wait goes on holding l until it is over, renewed as before, and only then gives it up and begins
// to wait. Nobody can signal under the mutex before that, so no signal is missed. The LockDelay of a hold that the
// caller had beside l and has lost is kept in the same way. A hold beside which another was abandoned cannot be given
// up, because the lock is to run out by itself: that is ErrNested too. See [Lease.Abandon].
//
// ctx bounds all of this. When it ends, the error matches its error, and a signal that had come goes on to the next
// waiter. ctx may be one that [Lease.Context] has made of l. That ends when l is given up, so the wait follows the
// context that it was made from. A context made from that in turn, as by [context.WithTimeout], ends with l, and Wait
// returns an error that says so. Make it from the parent of l's contexts instead.
//
// Wait survives broken connections. If the engine has lost its place, it goes on as if a signal had come. It costs two
// round trips and a message, and one round trip a second while it lasts.
func (c *Cond) Wait(ctx context.Context, l *Lease) (*Lease, error) {
	if err := shell.CheckCall(c.checkMade(), ctx); err != nil {
		return nil, err
	}
	if l == nil {
		return nil, shell.Wrap(
			"wait for the condition of",
			c.m.lock.Key(),
			fmt.Errorf("the lease is nil: %w", ErrNotHeld),
		)
	}
	if err := l.checkMade(); err != nil {
		return nil, err
	}
	ctx, cancel := shell.WaitContext(ctx, l.hold())
	defer cancel()
	w, err := shell.BeginCondWait(ctx, &c.m.lock, l.hold())
	if err != nil {
		return nil, shell.Wrap("wait for the condition of", c.m.lock.Key(), err)
	}
	defer w.Over()
	bounded := core.CallContext{User: ctx, Base: shell.ClientOf(&c.m.lock).WaitsCtx}
	answer, err := shell.ClientOf(&c.m.lock).Driver.(driver.Conder).CondWait(&bounded, w.Give, &w.R, w.Parked)
	ended := bounded.Err() != nil
	bounded.End()
	if err != nil {
		return nil, w.Failed(ctx, err, ended)
	}
	return handOver(w.Granted(ctx, answer))
}

// Signal wakes the wait that has lasted longest, if there is one. The caller need not hold the mutex. See [Latch.Set]
// for repetitions and errors; it costs one round trip.
func (c *Cond) Signal(ctx context.Context) error { return c.signal(ctx, "signal", false) }

// Broadcast wakes all waits; they get the mutex one after the other. Otherwise it is like Signal.
func (c *Cond) Broadcast(ctx context.Context) error { return c.signal(ctx, "broadcast", true) }

// signal is Signal, or Broadcast with all. All repetitions carry one ID, so that none of them wakes another wait. The
// engine remembers the ID for two leases (Horizon).
func (c *Cond) signal(ctx context.Context, op string, all bool) error {
	if err := shell.CheckCall(c.checkMade(), ctx); err != nil {
		return err
	}
	cl := shell.ClientOf(&c.m.lock)
	s := &driver.Signal{Key: c.m.lock.Key(), ID: cl.NewID(), All: all, Horizon: 2 * cl.Config.Lease}
	return cl.Persist(ctx, op, c.m.lock.Key(), func(ctx context.Context) error {
		return cl.Driver.(driver.Conder).CondSignal(ctx, s)
	})
}

var errNoCond = errors.New("interlock: Cond was not made by Client.Cond")

func (c *Cond) checkMade() error {
	if c == nil || c.m == nil && c.err == nil {
		return errNoCond
	}
	return c.err
}
