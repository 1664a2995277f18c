package interlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

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
	inner     bool          // it keeps the upgradeable read of upgradePair; see core_convert.go

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
	contexts   endings       // to be cancelled, once Client.mu has been given up
	conversion *waiter       // the Upgrade or Downgrade that waits; see hold_convert.go
	condWait   givenUp       // the Cond.Wait that gives the hold up, while the engine is asked; see cond_wait.go
}

// listening returns the listeners, and makes them on first use. The caller holds Client.mu.
func (l *Lease) listening() *endListeners {
	if l.listeners == nil {
		l.listeners = &endListeners{}
	}
	return l.listeners
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

// token is like Token; the caller must hold Client.mu, or know that the token no longer changes.
func (l *Lease) token() uint64 { return l.g.Token + uint64(l.pass) }

// ended says how the hold has ended, or returns nil. It looks at no clock; see check. The caller holds Client.mu.
func (l *Lease) ended() error {
	switch {
	case l.isAdopted():
		return errAdopted
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

// params is a lock's options with the client's filled in. It does not change once the lock is made: many Mutexes, holds
// and calls share one.
type params struct {
	grants.Terms
	kind         driver.Kind   // of lock
	wait         time.Duration // LockOptions.Wait; 0 if the caller's context alone bounds the waiting
	single       bool          // it never passes on, and each request goes to the engine by itself: an election
	label, class string
	labelFrom    func(context.Context, string) string // nil if all calls have the same label
	ownLabel     bool                                 // label belongs to one call
	err          error                                // an invalid name or option; the first call returns it
	// for readers, writers and permits
	share shareMode
}

// shareMode is how a read/write lock or a semaphore is asked for. The zero value is a mutex's.
type shareMode struct {
	direct        bool // each request goes to the engine by itself; see acquire_direct.go
	mode          driver.Mode
	limit, weight int
	of            *[3]lock // the lock of which this is one mode; nil of a semaphore
	resizes       *resizes // of the semaphore whose permits these are; nil of other locks
}

// announced is what the Observer knows of a hold. Each Acquired has one Released or Lost, which comes after it.
type announced uint8

const (
	unannounced    announced = iota // Acquired has not returned; for a hold that nobody gets it is never called
	announcedStart                  // Acquired has returned, so the end is told when it comes
	endOwed                         // the hold ended before Acquired returned: whoever calls Acquired tells the end
)

// relabel notes that l is about to have g. The engine shows the label of the request, or of an earlier holder, until a
// renewal brings this one. The caller holds Client.mu.
func (g *grant) relabel(l *Lease) {
	if g.holds.first != nil { // the oldest hold's label is shown
		return
	}
	shown := g.m.p.label
	if g.last != nil {
		shown = g.last.m.p.label
	}
	if l.m.p.label != shown {
		g.Mislabelled = true
	}
}

// relabelDelay is how long a hold that was passed on inside the process goes before the engine is told its label.
// Most holds are over by then and cost no message.
const relabelDelay = 100 * time.Millisecond
