package interlock

import (
	"context"
	"time"
)

// Observer is told what happens to locks: the hook for metrics, traces and tests. nil functions are skipped. They are
// called from many goroutines at once, never while a lock of the client is held inside, and they must not block: the
// caller of Lock or Unlock waits for them. They may use leases, but must not call Close, which waits for them.
//
// Each hold that Acquired was told of gets exactly one Lost or Released, after it, whatever ends the hold: a gauge that
// counts up in the one and down in the others shows how many are held.
//
// A function that panics leaves no lock behind. Acquired, Upgraded and Failed are called in the goroutine of the call
// that they tell of, and a panic goes on to its caller; the others may be called in any goroutine, also in those of
// this package, so a panic is recovered there and logged with its stack at Error, see Options.Logger.
type Observer struct {
	// Waiting is called when a Lock or Upgrade has to wait for another owner. A panic is logged, and the wait goes on.
	Waiting func(ctx context.Context, e Event)
	// Acquired is called when there is a new hold, re-entry included: by Lock, TryLock, Acquire, Campaign and the like,
	// and by Cond.Wait, which gives up one hold and gets another. After a panic nobody has the hold, so it is given
	// back (waiting at most Options.CloseTimeout for the engine, and without its MinHold) before the panic goes on; so
	// is all of a Multi, which may take as long again.
	Acquired func(ctx context.Context, e Event)
	// Upgraded is called when Lease.Upgrade has succeeded: the hold goes on, with the token of the Event. After a panic
	// it is upgraded still, and its holder unlocks it as ever. A Downgrade is not told.
	Upgraded func(ctx context.Context, e Event)
	// Failed is called when one of the calls of Acquired or Upgraded has failed, except for Cond.Wait; Event.Err says
	// why. A panic goes on, when what a Multi had taken before has been given back.
	Failed func(ctx context.Context, e Event)
	// Renewed is called for each confirmed renewal. A panic is logged, and the hold is renewed as before.
	Renewed func(e Event)
	// Lost is called for each hold that ended although it was not released; Event.Err is the *LostError. A panic is
	// logged; the holder has been told before.
	Lost func(e Event)
	// Released is called when a hold was given up by its owner, or by Close; Event.Err is set if the engine has not
	// confirmed it yet. A panic is logged, and Unlock returns what it would have returned.
	Released func(e Event)

	_ struct{}
}

// Event is what an Observer is told.
type Event struct {
	Kind                   Kind
	Name, Class, Owner     string
	Token                  uint64
	Waited, Held, Remained time.Duration // Remained: trust left when the renewal was confirmed
	Local                  bool          // passed on inside the process
	Err                    error
}
