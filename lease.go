package interlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence/stamp"
)

// What the owner of a hold has in hand, and what it is told: token, stamp, end, contexts. Everything here judges at
// this process's own clock and asks no engine. release.go ends a hold, lease_extend.go and hold_convert.go change it,
// and the other lease_* files have one method each.

// Kind returns the kind of lock that is held.
func (l *Lease) Kind() Kind { return l.key().Kind }

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.key().Name }

// key returns the lock's key. It panics on a zero value, for methods that return no error.
func (l *Lease) key() driver.Key {
	if l == nil || l.m == nil {
		panic(errNoLease.Error())
	}
	return l.m.key()
}

// Owner returns the owner's name, or for an anonymous owner the id that operators see. It never changes.
func (l *Lease) Owner() string {
	l.key()
	return l.owner.id
}

// Token returns the fencing number of this acquisition. The engine mints it in the step that grants the lock. It is
// below 2^63, and larger than that of every earlier acquisition of this lock. What that rests on is in the engine's
// Guarantees. Re-entry does not change it. Give resources the whole [Lease.Stamp].
//
// An upgrade brings a new one, which all holds of its owner on this lock have from then on. Token can be called after
// the hold has ended, and asks no engine.
func (l *Lease) Token() uint64 {
	panicOn(l.checkMade())
	if l.m.p.share.direct { // of a mutex the token never changes, so it needs no lock
		l.m.client().lock()
		defer l.m.client().unlock()
	}
	return l.token()
}

// Stamp returns what a fence at the resource checks: a fence.Stamp, which is the same type. It reports false after the
// hold has ended: a holder that may be overtaken must not begin a write. It also reports false for a semaphore with a
// limit above 1, whose holders are inside together, in no order that a fence could check. It asks no engine.
func (l *Lease) Stamp() (s stamp.Stamp, ok bool) {
	panicOn(l.checkMade())
	c := l.m.client()
	c.lock()
	defer c.unlock()
	l.check(c.now())
	if l.ended() != nil || l.m.p.share.limit > 1 {
		return stamp.Stamp{}, false
	}
	return stamp.Stamp{Token: l.token(), Nonce: l.g.NonceOf(l.pass), Shared: l.reads()}, true
}

// Err returns nil while the hold may be trusted, a *LostError after it was lost, ErrReleased after it was released, and
// [ErrAdopted] after another client has adopted it. It looks at the clock itself, so it never returns nil after
// Deadline, even if the scheduler is late. It asks no engine.
func (l *Lease) Err() error {
	if err := l.checkMade(); err != nil {
		return err
	}
	c := l.m.client()
	c.lock()
	defer c.unlock()
	l.check(c.now())
	return l.ended()
}

// Deadline returns the instant until which the hold is trusted without another renewal. Each confirmed renewal moves it
// on. On engines whose holds last as long as the process it is the zero time, unless NoRenew or MaxHold set an end.
// After the hold has ended it is the instant at which it ended, which may be before that was noticed. It asks no
// engine.
func (l *Lease) Deadline() time.Time {
	panicOn(l.checkMade())
	c := l.m.client()
	c.lock()
	defer c.unlock()
	l.check(c.now())
	if l.ended() != nil {
		return c.time(l.end)
	}
	return c.time(min(l.end, l.trusted()))
}

// Lost returns a channel that is closed when the hold is lost, or when another client has adopted it ([Lease.Handle]).
// A release does not close it. All calls return the same channel. It costs no goroutine.
func (l *Lease) Lost() <-chan struct{} {
	panicOn(l.checkMade())
	c := l.m.client()
	c.lock()
	defer c.unlock()
	l.check(c.now())
	listeners := l.listening()
	if listeners.lost == nil {
		listeners.lost = make(chan struct{})
		if l.loss != nil {
			close(listeners.lost)
		}
	}
	return listeners.lost
}

// Context returns a context for the work under the lock. It is cancelled when parent is, when the hold is lost (its
// cause is then the *LostError) and when the hold is released (its cause is then ErrReleased). It carries the owner: a
// Lock with it, or with a context derived from it, re-enters. All goroutines that use it are this owner, so the lock
// does not exclude them from each other.
//
// Pass the context of the work, not one with the time limit of the acquisition. A nil parent panics. Each call makes a
// new context, which the lease remembers until either of the two ends.
func (l *Lease) Context(parent context.Context) context.Context {
	panicOn(checkCall(l.checkMade(), parent))
	w := &leaseContext{lease: l}
	ctx := w.begin(parent, l.owner)
	c := l.m.client()
	c.lock()
	l.check(c.now())
	ended := l.ended()
	listeners := l.listening()
	c.unlock()
	if ended != nil {
		w.cancel(ended)
		return ctx
	}
	// Forget the context when its parent has ended. Otherwise a long hold with many contexts would only ever grow.
	w.stop = context.AfterFunc(parent, func() { listeners.contexts.forget(&w.ending, c.lock, c.unlock) })
	// Only now, because whoever ends the hold calls stop.
	if err := l.watch(w); err != nil {
		w.end(err)
	}
	return ctx
}

// heldError describes l to another owner of this process, in whose way it is. The caller holds Client.mu.
func (l *Lease) heldError() *HeldError {
	c := l.m.client()
	return &HeldError{
		Kind: l.Kind(), Name: l.Name(), Owner: l.owner.id, Client: c.opts.ClientName, Token: l.token(),
		Since: c.time(l.since).Round(0), // without the monotonic reading: it is for people
		Until: c.time(l.g.deadline()).Round(0),
	}
}

// named adds the lock and the operation to an ErrReleased, ErrClosed or ErrAdopted that does not name them yet.
func (l *Lease) named(op string, err error) error {
	if err == ErrReleased || err == ErrClosed || err == ErrAdopted { //nolint:errorlint // what wraps it has said so
		return wrap(op, l.m.key(), err)
	}
	return err
}
