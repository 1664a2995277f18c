package interlock

import (
	"context"
	"time"
)

// Observer is told what happens to locks: the hook for metrics, traces and tests. nil functions are skipped. They are
// called from many goroutines at once, never while a lock of the client is held inside, and they must not block: the
// caller of Lock or Unlock waits for them. They may use leases, but must not call Close, which waits for them.
type Observer struct {
	// Waiting is called when a Lock has to wait for another owner.
	Waiting func(ctx context.Context, e Event)
	// Acquired is called when a Lock or TryLock has succeeded, re-entry included.
	Acquired func(ctx context.Context, e Event)
	// Failed is called when a Lock or TryLock has failed; Event.Err says why.
	Failed func(ctx context.Context, e Event)
	// Renewed is called for each confirmed renewal.
	Renewed func(e Event)
	// Lost is called for each hold that ended although it was not released; Event.Err is the *LostError.
	Lost func(e Event)
	// Released is called when a hold was given up by its owner; Event.Err is set if the engine has not confirmed it yet.
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

func (o *Observer) waiting(ctx context.Context, e Event) {
	if o.Waiting != nil {
		o.Waiting(ctx, e)
	}
}

func (o *Observer) failed(ctx context.Context, e Event) {
	if o.Failed != nil {
		o.Failed(ctx, e)
	}
}

func (o *Observer) renewed(e Event) {
	if o.Renewed != nil {
		o.Renewed(e)
	}
}

func (o *Observer) lost(e Event) {
	if o.Lost != nil {
		o.Lost(e)
	}
}
