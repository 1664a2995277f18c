package interlock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// What can go wrong, as sentinels and types. Drivers return raw errors; internal/shell/errors.go adds lock, operation
// and class, once.

// The errors and data that engines share with this package. They are types of package driver, whose fields are shown
// here.
type (
	// HeldError says that another owner holds the lock, and who. It matches ErrHeld, and unwraps to Cause. A field that
	// the engine does not tell is zero.
	//
	//	type HeldError struct {
	//		Kind   Kind      // of the lock
	//		Name   string    // of the lock
	//		Owner  string    // the id of an owner that holds it
	//		Client string    // the name of that owner's client, as operators see it: Options.ClientName
	//		Token  uint64    // the fencing token of the hold
	//		Since  time.Time // when it was granted, by the engine's clock
	//		Until  time.Time // when its lease ends, by the engine's clock
	//		Cause  error     // of a wait: why it ended, such as context.DeadlineExceeded; nil of a Try
	//
	//		Waited time.Duration // how long the wait lasted that LockOptions.Wait ended; else 0
	//
	//		Retains bool // its client may keep it after it was unlocked, until another asks: LockOptions.Retain
	//	}
	HeldError = driver.HeldError

	// LostError says that a hold ended although it was not released: another owner may be inside by now. It matches
	// ErrLost. If no renewal was confirmed in time (LostUnconfirmed), Cause says how the last one failed, on engines
	// whose renewals this package sends. Cause matches what went wrong, such as [syscall.ECONNREFUSED], but neither
	// ErrUnavailable, ErrRefused nor the errors of contexts: a loss is none of these.
	//
	//	type LostError struct {
	//		Kind   Kind       // of the lock
	//		Name   string     // of the lock
	//		Token  uint64     // the fencing token of the hold; 0 if it is not known
	//		Reason LostReason // how it was lost
	//		Cause  error      // what led to the loss; nil if nothing more is known. The error unwraps to it
	//	}
	LostError = driver.LostError

	// UnavailableError says that the engine did not answer, so that the outcome is unknown. With NotSent it says that
	// the engine could not be asked, so that nothing has happened. It matches ErrUnavailable.
	//
	//	type UnavailableError struct {
	//		Op      string // the operation, such as "lock" or "unlock"
	//		Name    string // of the lock; empty if it was about none
	//		Err     error  // what went wrong. The error unwraps to it
	//		NotSent bool   // nothing was sent, or it was turned away unread, so nothing has happened
	//	}
	UnavailableError = driver.UnavailableError

	// RefusedError says that the engine answered and refused, why, and what to do about it. It matches ErrRefused, and
	// ErrUnavailable as well.
	//
	//	type RefusedError struct {
	//		Op   string // the operation, such as "lock" or "unlock"
	//		Name string // of the lock; empty if it was about none
	//		Err  error  // what the engine said, without passwords. The error unwraps to it
	//		Hint string // what to do about it; empty if the engine's driver does not know
	//		Open bool   // it may have left something, or a place in a queue, which is undone; else nothing changed
	//	}
	RefusedError = driver.RefusedError

	// LostReason says how a hold was lost. It is a string from a closed set, for logs and metrics:
	//
	//	LostUnconfirmed  "unconfirmed"  the trust ended without a confirmed renewal
	//	LostExpired      "expired"      the lease or MaxHold ended, by the engine's word or by this process's clock
	//	LostTaken        "taken"        another owner has it
	//	LostBroken       "broken"       an operator broke it: Client.Break
	//	LostSession      "session"      the session or connection ended
	//	LostSuspended    "suspended"    this machine stood still for longer than the lease
	//	LostAdopted      "adopted"      another client has adopted it; the lease itself says ErrAdopted
	//
	// The drivers of this project have no others. A third party's driver could: count all of its own as one.
	LostReason = driver.LostReason

	// LockInfo is what an engine tells about one lock. What it does not tell is zero.
	//
	//	type LockInfo struct {
	//		Kind       Kind            // of the lock
	//		Name       string          // of the lock
	//		Limit      int             // of a semaphore: how many permits there are; 1 of a mutex
	//		Holders    []driver.Holder // who holds it: owner, client, label, token, weight, since and until when
	//		Waiters    []driver.Waiter // who waits, the next first: owner, client, label, weight, since, position
	//		Unreadable string          // why no more than kind and name is known, or empty; never what is stored
	//	}
	LockInfo = driver.LockInfo

	// Kind is a sort of lock. Each kind has a name space of its own. It is a string: "mutex", "rw" and so on.
	Kind = driver.Kind
)

// The kinds of locks and the ways to lose one, see package driver.
const (
	KindMutex     = driver.KindMutex     // an exclusive lock
	KindRWMutex   = driver.KindRWMutex   // any number of readers, or one writer
	KindSemaphore = driver.KindSemaphore // a number of permits
	KindElection  = driver.KindElection  // a mutex whose holder has a value
	KindLatch     = driver.KindLatch     // a count that goes down to zero
	KindCond      = driver.KindCond      // the condition of a mutex

	LostUnconfirmed = driver.LostUnconfirmed // the trust ended without a confirmed renewal
	LostExpired     = driver.LostExpired     // the lease or MaxHold ended
	LostTaken       = driver.LostTaken       // another owner has it
	LostBroken      = driver.LostBroken      // an operator broke it: Client.Break
	LostSession     = driver.LostSession     // the session or connection ended
	LostSuspended   = driver.LostSuspended   // this machine stood still for longer than the lease
	LostAdopted     = driver.LostAdopted     // another client has adopted it
)

// What can go wrong, for errors.Is.
var (
	// ErrHeld: another owner holds the lock. See HeldError.
	ErrHeld = driver.ErrHeld
	// ErrLost: you held it, and another may be inside now. See LostError.
	ErrLost = driver.ErrLost
	// ErrReleased: this hold was released before, by Unlock or by Close.
	ErrReleased = driver.ErrReleased
	// ErrUnavailable: the engine did not answer, and the outcome is unknown, or it could not be asked. See
	// UnavailableError. A refusal matches it too.
	ErrUnavailable = driver.ErrUnavailable
	// ErrRefused: the engine said no: a missing right, no room, a read-only server, a key or path of another program.
	// Asking again does not help until the cause is mended. See RefusedError.
	ErrRefused = driver.ErrRefused
	// ErrUnsupported: the engine, or this version, cannot do what was asked.
	ErrUnsupported = driver.ErrUnsupported
	// ErrClosed: the client is closed.
	ErrClosed = driver.ErrClosed
	// ErrDeadlock: the wait would never end. Either owners wait for each other for mutexes, reads, writes or permits
	// (the error says who for what), or an owner would wait for itself. Give back what you hold before you try again.
	// Of owners that wait for each other the one who came last gets the error. Within one client that is on every
	// engine, about a second later. Over clients and processes it is only in memory and on Redis, for owners named by
	// [WithOwner], up to a minute later, and later still if an owner holds in one process and waits in another, in a
	// long line.
	ErrDeadlock = driver.ErrDeadlock
	// ErrNested: the owner has further holds on this lock, so this one cannot be given up alone.
	ErrNested = driver.ErrNested
	// ErrConflict: the lock is in use with other parameters, or the hold is not in the state that the call needs.
	ErrConflict = driver.ErrConflict
	// ErrNotHeld: nobody holds the lock.
	ErrNotHeld = driver.ErrNotHeld
)

// ErrAdopted says that this hold has gone on to another client, which has adopted it by its [Lease.Handle]. It matches
// ErrReleased too: nothing was lost, and there is nothing to give back.
var ErrAdopted error = core.ErrAdopted
