package core

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Lease is a hold as its user has it in hand. The package above gives it its methods, by a conversion of the pointer.
type Lease struct {
	_    NoCopy
	hold Hold
}

// Hold returns the hold, and nil of a nil Lease. A copy of a Lease has a hold that no event reaches; see IsCopy.
func (l *Lease) Hold() *Hold {
	if l == nil {
		return nil
	}
	return &l.hold
}

// Hold is one hold of a lock: what Lock has taken, until it is given back or lost.
type Hold struct {
	lease  *Lease // of which it is; nil of one that a conversion asks for
	Lock   *Lock
	Engine *EngineHold // the engine's grant on which it rests; a conversion changes it; guarded by Machine.Mu
	Below  *EngineHold // of an upgraded hold the read that it keeps, else nil; see upgradeTo; guarded by Machine.Mu
	Owner  *Owner
	Links  [listKinds]links // its neighbours in the lists of its grant and of its owner; see list

	Since     trust.Instant // when it was granted; MaxHold, MinHold and events count from here
	Waited    time.Duration // from the call to the grant, for events
	Pass      int32         // of the grant: the token and nonce in use are its own; guarded by Machine.Mu
	rank      int32         // its place in its owner's holdHeap; guarded by Owner.Mu
	Local     bool          // it came by a pass or a re-entry, without a request to the engine
	Announced Announced     // what the Observer knows; guarded by Machine.Mu

	// Guarded by Machine.Mu.
	released bool              // by Unlock or Close
	Pending  int32             // calls of Pending that are not over
	Loss     *driver.LostError // how it was lost; nil if it was not
	// by NoRenew or MaxHold, or never; once the hold has ended, when it did
	End       trust.Instant
	Listeners *EndListeners // nil until somebody listens for its end
}

// EndListeners are notified when the lease ends. Most holds have none, so they are made when asked for. Guarded by
// Machine.Mu.
type EndListeners struct {
	Lost       chan struct{} // closed by a loss; nil until Lost is called
	Wanted     chan struct{} // closed when another client wants the lock; nil until Wanted is called
	Contexts   Endings       // to be cancelled, once Machine.Mu has been given up
	Conversion *Waiter       // the Upgrade or Downgrade that waits; see lease.go
	CondWait   GivenUp       // the Cond.Wait that gives the hold up, while the engine is asked
}

// Lease returns what the user of l has in hand, and nil of a nil Hold.
func (l *Hold) Lease() *Lease {
	if l == nil {
		return nil
	}
	return l.lease
}

// IsCopy reports whether the user has copied the Lease of which l is.
func (l *Hold) IsCopy() bool { return l.lease == nil || &l.lease.hold != l }

// Listening returns the listeners, and makes them on first use. The caller holds Machine.Mu.
func (l *Hold) Listening() *EndListeners {
	if l.Listeners == nil {
		l.Listeners = &EndListeners{}
	}
	return l.Listeners
}

// NewHold returns a lease of m for o, which is no hold yet. Without an owner it makes one, in the same allocation: an
// anonymous owner lives about as long as its first hold.
func (m *Lock) NewHold(o *Owner) *Hold {
	if o == nil {
		first := &struct {
			lease Lease
			owner Owner
		}{}
		first.owner.ID = m.Core.Shell.NewID()
		return first.lease.Begin(m, &first.owner)
	}
	return new(Lease).Begin(m, o)
}

// Begin makes the hold of l one of m for o.
func (l *Lease) Begin(m *Lock, o *Owner) *Hold {
	l.hold.Lock, l.hold.Owner, l.hold.lease = m, o, l
	return &l.hold
}

// Token is like Token; the caller must hold Machine.Mu, or know that the token no longer changes.
func (l *Hold) Token() uint64 { return l.Engine.Token + uint64(l.Pass) }

// Ended says how the hold has ended, or returns nil. It looks at no clock; see check. The caller holds Machine.Mu.
func (l *Hold) Ended() error {
	switch {
	case l.IsAdopted():
		return ErrAdopted
	case l.Loss != nil:
		return l.Loss
	case l.released:
		return driver.ErrReleased
	}
	return nil
}

// IsAdopted reports whether another client has adopted the hold. It is kept as a loss, because it comes from the engine
// in the same way, but callers see ErrAdopted. The caller holds Machine.Mu.
func (l *Hold) IsAdopted() bool { return l.Loss != nil && l.Loss.Reason == driver.LostAdopted }

// MaxHoldEnd returns the end of MaxHold, which Extend cannot move, or never.
func (l *Hold) MaxHoldEnd() trust.Instant {
	if l.Lock.Terms.MaxHold == 0 {
		return trust.Never
	}
	return l.Since.Plus(l.Lock.Terms.MaxHold)
}

// Check notices that the hold's time is over, which the scheduler may not have seen yet. Every method that says whether
// the hold lives calls it first. The caller holds Machine.Mu.
func (l *Hold) Check(now trust.Instant) {
	for g := range l.EngineHolds() {
		if l.Ended() == nil {
			l.Lock.Core.Expire(g, now)
		}
	}
}

// Announced is what the Observer knows of a hold. Each Acquired has one Released or Lost, which comes after it.
type Announced uint8

const (
	unannounced    Announced = iota // Acquired has not returned; for a hold that nobody gets it is never called
	AnnouncedStart                  // Acquired has returned, so the end is told when it comes
	EndOwed                         // the hold ended before Acquired returned: whoever calls Acquired tells the end
)

// relabel notes that l is about to have g. The engine shows the label of the request, or of an earlier holder, until a
// renewal brings this one. The caller holds Machine.Mu.
func (g *EngineHold) relabel(l *Hold) {
	if g.IsHeld() { // the oldest hold's label is shown
		return
	}
	shown := g.Lock.Terms.Label
	if g.Last != nil {
		shown = g.Last.Lock.Terms.Label
	}
	if l.Lock.Terms.Label != shown {
		g.Mislabelled = true
	}
}

// RelabelDelay is how long a hold that was passed on inside the process goes before the engine is told its label.
// Most holds are over by then and cost no message.
const RelabelDelay = 100 * time.Millisecond
