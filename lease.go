package interlock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence/stamp"
	"github.com/interlock-go/interlock/internal/trust"
)

// What the owner of a hold has in hand, and what it is told: token, stamp, end, contexts. Everything here judges at
// this process's own clock and asks no engine. release.go ends a hold, lease_extend.go and hold_convert.go change it,
// and the other lease_* files have one method each.

// Lease is one hold of a lock: the result of Lock, and the only thing that can unlock it. It is safe for concurrent
// use. The zero value cannot be used, nor can a copy: methods say so in their error, or panic where they return none.
//
// A hold ends by [Lease.Unlock], by [Client.Close], or by being lost. It is lost when its trust window ends without a
// confirmed renewal, or when the engine says that it is gone. It is lost, too, when its fixed lease or MaxHold ends, or
// when this machine was suspended for too long. From that moment on another owner may be inside, so the holder has to
// stop. Lost is closed, contexts made by Context are cancelled, and Err, Stamp and Unlock say so. They say so in time,
// by this process's own clock, whatever the network does. They cannot reach into a process that stands still. For that,
// give [Lease.Stamp] to the resource.
type Lease struct {
	_     noCopy
	self  *Lease // l itself: a copy is recognised by it
	m     *lock
	g     *grant // the engine's grant on which it rests; a conversion changes it; guarded by Client.mu
	owner *owner
	in    [listKinds]links // its neighbours in the lists of its grant and of its owner; see list

	since     trust.Instant // when it was granted; MaxHold, MinHold and events count from here
	waited    time.Duration // from the call to the grant, for events
	pass      int32         // of the grant: the token and nonce in use are its own; guarded by Client.mu
	rank      int32         // its place in its owner's holdHeap; guarded by owner.mu
	local     bool          // it came by a pass or a re-entry, without a request to the engine
	announced announced     // what the Observer knows; guarded by Client.mu
	inner     bool          // it keeps the upgradeable read of upgradePair; see hold_upgrade_pair.go

	// Guarded by Client.mu.
	released bool       // by Unlock or Close
	pending  int32      // calls of Pending that are not over
	loss     *LostError // how it was lost; nil if it was not
	// by NoRenew or MaxHold, or never; once the hold has ended, when it did
	end       trust.Instant
	listeners *endListeners // nil until somebody listens for its end
	// of an upgraded hold the inner one that keeps its read, and of the inner one the upgraded hold; else nil
	upgradePair *Lease
}

// endListeners are notified when the lease ends. Most holds have none, so they are made when asked for. Guarded by
// Client.mu.
type endListeners struct {
	lost       chan struct{} // closed by a loss; nil until Lost is called
	wanted     chan struct{} // closed when another client wants the lock; nil until Wanted is called
	contexts   []*ending     // to be cancelled, once Client.mu has been given up
	conversion *waiter       // the Upgrade or Downgrade that waits; see hold_convert.go
	condWait   givenUp       // the Cond.Wait that gives the hold up, while the engine is asked; see cond_wait.go
}

// newLease returns a lease of m for o, which is no hold yet. Without an owner it makes one, in the same allocation: an
// anonymous owner lives about as long as its first hold.
func (m *lock) newLease(o *owner) *Lease {
	if o != nil {
		l := &Lease{m: m, owner: o}
		l.self = l
		return l
	}
	first := &struct {
		lease Lease
		owner owner
	}{}
	first.owner.id = m.c.shell.newID()
	first.lease.m, first.lease.owner, first.lease.self = m, &first.owner, &first.lease
	return &first.lease
}

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

// token is like Token; the caller must hold Client.mu, or know that the token no longer changes.
func (l *Lease) token() uint64 { return l.g.Token + uint64(l.pass) }

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

// ended says how the hold has ended, or returns nil. It looks at no clock; see check. The caller holds Client.mu.
func (l *Lease) ended() error {
	switch {
	case l.isAdopted():
		return ErrAdopted
	case l.loss != nil:
		return l.loss
	case l.released:
		return ErrReleased
	}
	return nil
}

// isAdopted reports whether another client has adopted the hold. It is kept as a loss, because it comes from the engine
// in the same way, but callers see ErrAdopted. The caller holds Client.mu.
func (l *Lease) isAdopted() bool { return l.loss != nil && l.loss.Reason == LostAdopted }

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

// maxHoldEnd returns the end of MaxHold, which Extend cannot move, or never.
func (l *Lease) maxHoldEnd() trust.Instant {
	if l.m.p.MaxHold == 0 {
		return trust.Never
	}
	return l.since.Plus(l.m.p.MaxHold)
}

// check notices that the hold's time is over, which the scheduler may not have seen yet. Every method that says whether
// the hold lives calls it first. The caller holds Client.mu.
func (l *Lease) check(now trust.Instant) {
	if l.upgradePair != nil { // the read below an upgrade may end first
		l.m.c.expire(l.upgradePair.g, now)
	}
	if l.ended() == nil {
		l.m.c.expire(l.g, now)
	}
}

// endListeners returns the listeners, and makes them on first use. The caller holds Client.mu.
func (l *Lease) endListeners() *endListeners {
	if l.listeners == nil {
		l.listeners = &endListeners{}
	}
	return l.listeners
}

// Lost returns a channel that is closed when the hold is lost, or when another client has adopted it ([Lease.Handle]).
// A release does not close it. All calls return the same channel. It costs no goroutine.
func (l *Lease) Lost() <-chan struct{} {
	panicOn(l.checkMade())
	c := l.m.client()
	c.lock()
	defer c.unlock()
	l.check(c.now())
	listeners := l.endListeners()
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
	if ended == nil {
		listeners := l.endListeners()
		listeners.contexts = append(listeners.contexts, &w.ending)
	}
	c.unlock()
	if ended != nil {
		w.cancel(ended)
		return ctx
	}
	// Forget the context when its parent has ended. Otherwise a long hold with many contexts would only ever grow.
	context.AfterFunc(ctx, func() { l.forget(w) })
	return ctx
}

// forget removes a context that has ended.
func (l *Lease) forget(w *leaseContext) {
	l.m.client().lock()
	defer l.m.client().unlock()
	listeners := l.endListeners()
	if i := slices.Index(listeners.contexts, &w.ending); i >= 0 {
		listeners.contexts = slices.Delete(listeners.contexts, i, i+1)
	}
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
