package driver

import (
	"fmt"
	"slices"
	"time"
)

// What an engine is and what it cannot do, with reasons. docs/evidence/engines.md is generated from this and from what
// drivertest measures.

// Lifetime says what ends a hold whose client has vanished.
type Lifetime uint8

const (
	// Leases: the hold ends when its lease was not renewed.
	Leases Lifetime = iota + 1
	// Sessions: the hold ends when the client's session does.
	Sessions
	// Process: the hold ends with the process, at once.
	Process
)

// String returns the word used in tables.
func (l Lifetime) String() string {
	switch l {
	case Leases:
		return "lease"
	case Sessions:
		return "session"
	case Process:
		return "process"
	}
	return fmt.Sprintf("Lifetime(%d)", uint8(l))
}

// Ability names something that not every engine can do.
type Ability string

const (
	// NamedOwners: an owner named by the caller re-enters from another process.
	NamedOwners Ability = "named owners"
	// Order: the engine grants first come, first served.
	Order Ability = "order"
	// Breaking: a hold can be ended from outside.
	Breaking Ability = "break"
	// Holders: who holds a lock can be listed.
	Holders Ability = "holders"
	// Waiters: who waits for a lock can be listed.
	Waiters Ability = "waiters"
	// Expiry: a client that stands still longer than its lease or session loses its holds.
	Expiry Ability = "expiry"
	// Conversion: a holder of a read/write lock takes another mode beside what it has; see [Converter]. It only matters
	// on engines with locks of [KindRWMutex].
	Conversion Ability = "conversion"
	// LockDelays: a lock can be kept from everybody for a while after a loss; see Request.LockDelay. Only engines with
	// leases can have it: after a crash nobody but the engine is left to do it.
	LockDelays Ability = "lock delay"
	// Recalls: a holder is told that another wants the lock; see Request.Wanted and Request.Retains.
	Recalls Ability = "recall"
	// Adoption: a hold goes on to another client; see [Adopter]. It only matters on engines with leases.
	Adoption Ability = "adoption"
	// Resizing: the limit of a semaphore is changed while it is in use; see [Resizer]. It only matters on engines with
	// locks of [KindSemaphore].
	Resizing Ability = "resize"
)

// Unsupported is an ability that an engine does not have, and why.
type Unsupported struct {
	Ability Ability // what it cannot do
	Reason  string  // one clause, without a full stop
}

// Traits describes an engine to the portable layer, to the conformance suite and to docs/evidence/engines.md.
type Traits struct {
	Engine   string   // "memory", "file", "redis": shown in errors and tables
	Lifetime Lifetime // what ends the holds of a client that has vanished

	// Timeout is the session's timeout on Sessions engines, as negotiated. Otherwise zero.
	Timeout time.Duration

	// QueueTimeout is, on Leases engines, how long a waiting request that is not asked again keeps its place in the
	// queue, and whatever it is granted there. Zero means until it is undone. Then the portable layer repeats the undo
	// until it succeeds, so what an outage costs grows with its length.
	QueueTimeout time.Duration

	// Local says that a Try, a Renew and a Release never wait for a network or another process. So the portable layer
	// may call them in the caller's goroutine, and tries once before it waits. It promises nothing for an Acquire that
	// is no Try: that waits for the holder on every engine, and a local engine may have a queue for it.
	Local bool

	// Resumes says that a wait can be left and taken up again. An Acquire whose context has ended keeps its place, and
	// what it is granted meanwhile, until the same ID is asked again or undone. The portable layer then asks, and
	// waits, in the caller's own goroutine. When the caller's context ends, another goroutine goes on with the wait for
	// those who stand behind. An engine whose requests travel should have it, because each change of goroutines costs
	// as much as the engine.
	Resumes bool

	Kinds []Kind // the kinds that the engine knows: KindLatch by Latcher, KindCond by Conder, the others by Acquire

	// Unsupported gives the reasons for what is missing. An Ability that is the name of a Kind says why the engine
	// has no locks of that kind.
	Unsupported []Unsupported
}

// Lacking returns the reason why the engine lacks a, and false if it does not.
func (t Traits) Lacking(a Ability) (reason string, lacks bool) {
	for _, l := range t.Unsupported {
		if l.Ability == a {
			return l.Reason, true
		}
	}
	return "", false
}

// Supports reports whether the engine knows locks of kind k.
func (t Traits) Supports(k Kind) bool { return slices.Contains(t.Kinds, k) }

// LackingKind returns the reason why the engine has no locks of kind k, and false if it has.
func (t Traits) LackingKind(k Kind) (reason string, lacks bool) {
	if t.Supports(k) {
		return "", false
	}
	if reason, lacks := t.Lacking(Ability(k)); lacks {
		return reason, true
	}
	return fmt.Sprintf("it has no locks of kind %s, only of %v", k, t.Kinds), true
}
