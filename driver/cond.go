package driver

import (
	"context"
	"time"
)

// Conder is implemented by engines whose locks have a condition, which its Traits say by KindCond. Each mutex
// has one. Who waits for it gives the lock up and gets it back after a signal, as with sync.Cond, so that no
// signal falls in between.
type Conder interface {
	// CondWait gives up the hold give and has r wait for a signal, in one step. After the signal r waits for the lock
	// like any other request, behind those who came before, and is granted with a new token. r has the owner of give,
	// and an ID of its own; both are exclusive.
	//
	// parked is called once, before anything else can become of r, when the hold has been given up. It does not block.
	//
	// When the owner has further holds on the lock, the error matches ErrNested, and nothing has happened. When the
	// hold is not there, it matches ErrLost, and r was not queued. After every other error both outcomes are open: the
	// caller settles give by Release and r by Release with Undo, as often as [Driver] says. The same r asked again goes
	// on with the same wait. CondWait survives broken connections; if the engine has lost its place meanwhile, it goes
	// on as though it had been signalled, so that no signal is missed.
	CondWait(ctx context.Context, give *Release, r *Request, parked func()) (Grant, error)

	// CondSignal wakes who has waited for the longest, or everybody. It needs no hold. The same ID asked again within
	// Horizon wakes nobody twice. A signal that has reached a request which is then undone, or whose client is found
	// dead before it has taken the lock, goes on to the next who waits.
	CondSignal(ctx context.Context, s *Signal) error
}

// Signal wakes who waits for the condition of a lock.
type Signal struct {
	Key
	ID      string        // of this signal, never used again
	All     bool          // everybody wakes, not only who has waited for the longest
	Horizon time.Duration // how long the ID is remembered
}
