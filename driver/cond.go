package driver

import (
	"context"
	"time"
)

// Conder is implemented by engines whose locks have a condition, which their Traits say by KindCond. Each mutex has
// one. A waiter gives the lock up and gets it back after a signal, as with sync.Cond, so that no signal falls in
// between.
type Conder interface {
	// CondWait gives up the hold give and has r wait for a signal, in one step. After the signal r waits for the lock
	// like any other request, behind those that came before, and is granted with a new token. r has the owner of give,
	// and an ID of its own; both are exclusive.
	//
	// parked is called once, when the hold has been given up and before anything else can become of r. It does not
	// block.
	//
	// When the owner has further holds on the lock, the error matches ErrNested, and nothing has happened. When the
	// hold is not there, it matches ErrLost, and r was not queued. After every other error both outcomes are open: the
	// caller settles give by Release and r by Release with Undo, as often as [Driver] says. The same r asked again goes
	// on with the same wait. CondWait survives broken connections. If the engine has lost its place meanwhile, it goes
	// on as if it had been signalled, so that no signal is missed.
	CondWait(ctx context.Context, give *Release, r *Request, parked func()) (Grant, error)

	// CondSignal wakes the wait that has lasted longest, or all. It needs no hold. The same ID asked again within
	// Horizon wakes nobody twice. If a signalled request is undone, or its client is found dead before it has taken the
	// lock, the signal goes on to the next waiter.
	CondSignal(ctx context.Context, s *Signal) error
}

// Signal wakes waits for the condition of a lock.
type Signal struct {
	Key
	ID      string        // of this signal, never used again
	All     bool          // all waits wake, not only the one that has lasted longest
	Horizon time.Duration // how long the ID is remembered
}
