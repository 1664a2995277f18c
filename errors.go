package interlock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// The errors and data that engines share with this package; see package driver for their fields.
type (
	// HeldError says that another owner holds the lock, and who. It matches ErrHeld.
	HeldError = driver.HeldError
	// LostError says that a hold ended although it was not released. It matches ErrLost. If no renewal was confirmed in time
	// (LostUnconfirmed), Cause says how the last one failed, where renewals are this package's; it matches what went wrong, such as
	// [syscall.ECONNREFUSED], but neither ErrUnavailable nor the errors of contexts: a loss is none of these.
	LostError = driver.LostError
	// UnavailableError says that the engine did not answer, so that the outcome is unknown. It matches ErrUnavailable.
	UnavailableError = driver.UnavailableError
	// LostReason says how a hold was lost.
	LostReason = driver.LostReason
	// LockInfo is what an engine tells about one lock.
	LockInfo = driver.LockInfo
	// Kind is a sort of lock; each has a name space of its own.
	Kind = driver.Kind
)

// The kinds of locks and the ways to lose one, see package driver.
const (
	KindMutex     = driver.KindMutex
	KindRWMutex   = driver.KindRWMutex
	KindSemaphore = driver.KindSemaphore
	KindElection  = driver.KindElection
	KindLatch     = driver.KindLatch
	KindCond      = driver.KindCond

	LostUnconfirmed = driver.LostUnconfirmed
	LostExpired     = driver.LostExpired
	LostTaken       = driver.LostTaken
	LostBroken      = driver.LostBroken
	LostSession     = driver.LostSession
	LostSuspended   = driver.LostSuspended
)

// What can go wrong, for errors.Is.
var (
	// ErrHeld: another owner holds the lock. See HeldError.
	ErrHeld = driver.ErrHeld
	// ErrLost: you held it, and another may be inside now. See LostError.
	ErrLost = driver.ErrLost
	// ErrReleased: this hold was released before, by Unlock or by Close.
	ErrReleased = driver.ErrReleased
	// ErrUnavailable: the engine did not answer; nobody knows what happened. See UnavailableError.
	ErrUnavailable = driver.ErrUnavailable
	// ErrUnsupported: the engine, or this version, cannot do what was asked.
	ErrUnsupported = driver.ErrUnsupported
	// ErrClosed: the client is closed.
	ErrClosed = driver.ErrClosed
	// ErrDeadlock: waiting would never end, because owners wait for each other for mutexes, reads, writes or permits (the error
	// says who for what), or an owner would wait for itself. Give back what you hold before you try again. Of owners that wait
	// for each other the one who came last is told: within one client on every engine, about a second later; over clients and
	// processes if they are named by [WithOwner], in memory and on Redis, up to a minute later.
	ErrDeadlock = driver.ErrDeadlock
	// ErrNested: the owner has further holds on this lock.
	ErrNested = driver.ErrNested
	// ErrConflict: the lock is in use with other parameters.
	ErrConflict = driver.ErrConflict
	// ErrNotHeld: nobody holds the lock.
	ErrNotHeld = driver.ErrNotHeld
)

// errNoFunction is for Do and its like, before anything is taken.
var errNoFunction = errors.New("the function is nil")

// wrap adds the operation, the lock and nothing else to an error that does not name them yet.
func wrap(op string, key driver.Key, err error) error {
	switch err.(type) { //nolint:errorlint // only these themselves name the lock; one inside another error is wrapped too
	case nil:
		return nil
	case *HeldError, *LostError, *UnavailableError: // these name the lock themselves
		return err
	}
	return fmt.Errorf("interlock: %s %q: %w", op, key.Name, err)
}

// called has an error of an engine that did not answer name op, for an operation that consists of others. Only of such an error
// is the operation known to programs, as UnavailableError.Op.
func called(op string, key driver.Key, err error) error {
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrLost) { // which may have come of that
		return unavailable(op, key, err)
	}
	return err
}

// unavailable is the error for an operation whose outcome the engine did not tell.
func unavailable(op string, key driver.Key, err error) error {
	if own, is := err.(*UnavailableError); is { //nolint:errorlint // the engine's own, which would say the same twice
		err = own.Err
	}
	return &UnavailableError{Op: op, Name: key.Name, Err: err}
}
