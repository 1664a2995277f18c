package driver

import (
	"context"
	"time"
)

// The seam itself: what every engine implements, and the words in which a request and its answer are said. The optional
// interfaces are in optional.go and a file each; errors.go has the errors.

// Driver is one client's access to an engine. Its methods are called from many goroutines at once.
//
// Every method returns within 50 ms after its context has ended, also when the server hangs. A driver whose client
// library does not honour contexts runs the call in a goroutine of its own and stops waiting for it.
//
// # What an error of Acquire means
//
// A definite error says that nothing was taken and nothing stays queued. An error is definite when it is a
// [RefusedError] that is not Open. It is definite, too, when it does not match [ErrUnavailable] and matches one of
// [ErrHeld] (of a Try), [ErrUnsupported], [ErrConflict], [ErrDeadlock], [ErrNested] or [ErrClosed]. After every other
// error, the context's included, the portable layer takes the outcome as unknown and calls Release with Undo for the
// same ID. So a driver need not clean up after a cancelled wait itself. The portable layer calls Release only after
// Acquire has returned, and then does not call Acquire for that ID again.
//
// A driver that sends a request more than once by itself must not call a refusal definite. It answers one copy, and
// another may still be granted. It returns such an error joined with [ErrUnavailable], or as a RefusedError that is
// Open.
//
// # How an engine's own errors are reported
//
// Each driver sorts what servers, file systems and client libraries say in one function. So callers are told the truth
// about the outcome, and what to do. A [RefusedError] is for what was answered and will be answered again: missing
// rights, no room, read-only, a key or path of another program. An [UnavailableError] with NotSent is for what never
// got there, and for what servers turn away for the moment. All else is an UnavailableError, or raw, and means unknown.
// A wait goes on after errors that mean unknown and after NotSent, and ends with a refusal.
//
// # What ends the repetition of Release
//
// The portable layer repeats a Release whose outcome is unknown until it is known, or until the client that asks is
// closed. On an engine with [Leases] it also stops when nothing can be left that a Release would end. A copy of the
// request is taken to be under way for Horizon at most, and for 10 seconds if that is less. What it takes then ends by
// itself. A hold ends with its lease, after which only its LockDelay is left, and a place in the queue after
// [Traits].QueueTimeout. Without a QueueTimeout the undo is repeated until it has succeeded.
//
// So whatever a driver of such an engine keeps of a request in this process is dropped with its first Release, whatever
// the outcome. Release must work without it.
type Driver interface {
	// Traits describes the engine. It is constant over the driver's life and costs nothing.
	Traits() Traits

	// Acquire waits until the request is granted, refused for good, or ctx ends. Granting mints the token in the same
	// atomic step. The same ID asked again gets the same grant: a retry after a lost reply takes nothing twice. If the
	// ID has been released or undone it is refused with an error matching ErrLost, and takes nothing. A hold that ended
	// before Acquire could return it is reported in the same way.
	//
	// When Acquire has returned, r is the caller's again, and may be used for another request; its Waiting and Lost may
	// be kept. Only an engine that keeps the request's place (see [Traits].Resumes) is asked again with the same r.
	Acquire(ctx context.Context, r *Request) (Grant, error)

	// Release ends the hold with r's ID, and only that one. It returns nil when it ended the hold, and an error
	// matching ErrLost when there is no such hold (it ended earlier, or was never granted). Any other error means that
	// the outcome is unknown and that the caller will ask again. A released ID stays refused for as long as a copy of
	// its Acquire may be under way.
	//
	// A driver that repeats a release by itself and then finds nothing does not know which copy ended the hold. It
	// returns an error that does not match ErrLost, and is asked again. For Undo see [Release]. r is the caller's again
	// when Release has returned.
	//
	// LostExpired and LostTaken are what an engine concludes when it finds no such hold: they are no evidence of a loss
	// if an earlier copy of the release may have ended it. Every other reason says that the engine remembers another
	// end.
	Release(ctx context.Context, r *Release) error

	// Close releases what the driver has of the machine: connections, goroutines, descriptors. Holds of a session or
	// process engine end with it; holds of a lease engine end with their lease.
	Close() error
}

// Key names a lock. Locks of different kinds never meet, whatever their names.
type Key struct {
	Kind Kind   // the name space
	Name string // 1 to 512 bytes of valid UTF-8, compared byte by byte
}

// Mode says with what else a request shares the lock.
type Mode uint8

const (
	// Exclusive takes the whole lock, whatever its limit: a mutex, a writer.
	Exclusive Mode = iota
	// Shared takes Weight of Limit: permits of a semaphore. With Limit 0 any number fit, as readers do.
	Shared
	// Upgradeable is the read that may become a write: beside readers, but one at a time.
	Upgradeable
)

// Request asks for one hold.
type Request struct {
	Key

	// ID names this hold for ever: Release, Renew and a retried Acquire match it and nothing else. It is never reused.
	ID string

	// Owner is shown to operators. If Named, requests of the same Owner re-enter each other's holds, from any process.
	// They bypass the queue and return the token and nonce that the lock already has. If not Named, no other request
	// ever re-enters, whatever its Owner: named and anonymous owners are different namespaces.
	Owner string
	Named bool // see Owner

	Client string // who asks, as operators see it, for instance "host:pid"
	Label  string // shown to operators, the first 255 bytes at least

	Mode   Mode // what it shares the lock with
	Limit  int  // of a semaphore; ignored for Exclusive
	Weight int  // at least 1; ignored for Exclusive

	// Lease is how long the hold lasts without renewal, on Leases engines; others ignore it.
	Lease time.Duration

	// LockDelay, if positive, is how long the lock stays closed to everybody after the hold was lost. It begins when
	// the lease has ended, or with Break. Within that time the hold is over for its owner, a named one too, and Break
	// ends the delay. A grant that Acquire has not returned when its time ended was nobody's, so that is no loss. Zero
	// if the engine lacks LockDelays.
	LockDelay time.Duration

	// Try refuses with a *HeldError instead of waiting, also when the lock is free but others wait for it.
	Try bool

	// SkipHolder says of a Try that a wait follows if it is refused. The holder is reported then, so the *HeldError
	// need not name it. Engines on which finding the holder costs nothing ignore it.
	SkipHolder bool

	// Tokens asks for this many consecutive tokens, so that the hold can pass on inside the process. At least 1.
	// The engine may grant fewer.
	Tokens int

	// Retains says that the client may keep the hold for a while after its owner has ended it. It has no owner then,
	// and the client gives it back when it is told that another wants the lock. When a later request finds such a hold
	// in the way, Wanted is called in the step that refuses or queues that request. Only engines that do not lack
	// Recalls are asked so, and only for exclusive, anonymous requests.
	Retains bool

	// Wanted, if not nil, is called after the grant when another request wants the lock. With Retains that is at once,
	// unless the message is lost. In any case it is by the answer to a renewal while somebody waits, or on Sessions
	// engines within a session's timeout. It may be called again and again, also before Acquire has returned, and also
	// when nobody waits any more. It does not block, and may be called from any goroutine.
	Wanted func()

	// Waiting, if not nil, is called when the engine has answered that somebody else is in the way, and again when that
	// changes. It must be called before a wait begins if the engine can tell at all. When its context ends a wait, that
	// is what distinguishes "held by another" from "the engine did not answer". It does not block.
	Waiting func(*HeldError)

	// Lost, if not nil, is called at most once, after the grant. It is called when the engine reports that this hold is
	// gone although it was not released: broken, taken, or its session ended. It does not block, and may be called from
	// any goroutine, also before Acquire has returned.
	Lost func(reason LostReason, cause error)
}

// Grant is the answer to a Request.
type Grant struct {
	// Token is the first of Tokens consecutive fencing numbers, all greater than any granted before for this lock. On
	// re-entry both are those that the lock already has.
	Token  uint64
	Tokens int // at least 1

	// Nonce is made when the lock goes from free to held, and is the same on re-entry.
	Nonce string

	// Sent and Lease are the trust window: the hold is the caller's from Sent for Lease. Sent is on the monotonic
	// clock, and not later than the engine's own instant of granting. A Lease shorter than asked is renewed soon, so a
	// push that must be claimed grants a short one. On Sessions engines Lease is the session's timeout and Session
	// counts instead of Sent. On Process engines both are zero: the hold lasts as long as the process.
	Sent    time.Time     // never the zero time on Leases engines
	Lease   time.Duration // see Sent
	Session Session       // only on Sessions engines
}

// Session is what keeps the holds of a Sessions engine alive. When it is lost, Request.Lost of each hold is called.
type Session interface {
	// Confirmed returns the instant, on the monotonic clock, at which the last answered sign of life was sent. The
	// session's holds are trusted from then for the timeout. It costs nothing. It goes back only while a request
	// under way may have shortened the session.
	Confirmed() time.Time
}

// Release ends one hold.
type Release struct {
	Key
	ID string // of the hold

	// Undo says that the outcome of the Acquire of this ID is unknown. Whatever that left is taken away, a place in the
	// queue included, and a copy of the request that arrives within Horizon is refused. Undo returns nil as soon as
	// nothing is left, also when there was nothing.
	Undo    bool
	Horizon time.Duration // how long the ID stays refused; see [Driver].Release

	// Keep, if positive, does not free the lock now but lets its lease run out after Keep (MinHold, LockDelay). It is
	// for Leases engines only; on others the portable layer keeps the hold and releases it later.
	Keep time.Duration
}
