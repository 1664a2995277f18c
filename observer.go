package interlock

import (
	"context"

	"github.com/interlock-go/interlock/internal/shell"
)

// What users are told: the functions of an Observer. observer_event.go has what each gets, observer_tell.go how and
// when it is called, observer_call.go the calls that wait.

// Observer is told what happens to locks: the hook for metrics, traces and tests. nil functions are skipped. They are
// called from many goroutines at once, never while a mutex of the client is held. They must not block: the caller of
// Lock or Unlock waits for them. They may use leases, but must not call Close, which waits for them. [Event] says which
// of its fields are set in which function, and [JoinObservers] makes one Observer of several.
//
// Each beginning has one end, so gauges that count up and down return to zero:
//
//   - Acquired has one Lost or Released, after it, whatever ends the hold;
//   - Waiting has one Acquired, Upgraded or Failed with Event.Queued, after it;
//   - Retained has one RetentionEnded, and Settling one Settled, after it.
//
// Close tells the ends of everything that was told before it, and then returns.
//
// A function that panics leaves no lock behind. Acquired, Upgraded and Failed are called in the goroutine of the call
// that they tell of, and a panic goes on to its caller. The others may be called in any goroutine, also in those of
// this package. So a panic is recovered there and logged with its stack at Error. See Options.Logger.
type Observer struct {
	// Waiting is called when a Lock or Upgrade has to wait for another owner, at most once for each call. The call does
	// not return before Waiting has. A panic is logged, and the wait goes on.
	Waiting func(ctx context.Context, e Event)
	// Acquired is called when there is a new hold, re-entry included. Lock, TryLock, Acquire, Campaign and the like
	// call it. So does Cond.Wait, which gives up one hold and gets another. After a panic nobody has the hold. So it is
	// given back before the panic goes on, without its MinHold, and waiting at most Options.CloseTimeout for the
	// engine. The same happens to all locks of a Multi, which may take as long again.
	Acquired func(ctx context.Context, e Event)
	// Upgraded is called when Lease.Upgrade has succeeded: the hold goes on, with the token of the Event. After a panic
	// it is still upgraded, and its holder unlocks it as usual. A Downgrade is not told.
	Upgraded func(ctx context.Context, e Event)
	// Failed is called when one of the calls of Acquired or Upgraded has failed, except for Cond.Wait. Event.Err says
	// why, and Event.Result in one word. A panic goes on, once everything that a Multi had taken before has been given
	// back.
	Failed func(ctx context.Context, e Event)

	// Renewed is called for each confirmed renewal; Event.Late says that it was a near miss. A panic is logged, and the
	// hold is renewed as before. On engines whose holds last as long as a session or a process this package sends no
	// renewals, so neither Renewed nor RenewalFailed is called.
	Renewed func(e Event)
	// RenewalFailed is called when an attempt to renew a hold has failed. Event.Err says how (it matches
	// ErrUnavailable), and Event.Remained how long the hold is still trusted. Attempts go on until then. An engine
	// that does not answer at all counts as failed after half of the Lease, so with the default Renewal this comes
	// before the loss. A panic is logged, and the hold is renewed as before.
	RenewalFailed func(e Event)
	// Lost is called for each hold that ended although it was not released. Event.Err is the *LostError, and
	// Event.Reason its reason. The holder has been told before. A panic is logged.
	Lost func(e Event)
	// Released is called when a hold was given up by its owner, or by Close. Event.Err is set if the engine has not
	// confirmed it yet. A panic is logged, and Unlock returns what it would have returned.
	Released func(e Event)

	// Retained is called when the client keeps a lock after its Unlock; see LockOptions.Retain. Released is called as
	// well. A panic is logged, and the lock is retained.
	Retained func(e Event)
	// RetentionEnded is called when the client no longer retains a lock: an owner of this process has taken it over, or
	// the client gives it back. A panic is logged.
	RetentionEnded func(e Event)
	// Recalled is called when another process asks for a lock that this client holds or retains, at most once for each
	// acquisition from the engine. A lock that is retained is given back at once. The holder of one that is held may
	// give way: see Lease.Wanted, which also says on which engines and when this is told. A panic is logged.
	Recalled func(e Event)

	// Settling is called before the client releases something in the background, asking the engine again and again
	// until the outcome is known. That is a release which was not confirmed in the time of Unlock, or the hold of a
	// lock that was lost or retained. With Event.Undo it is whatever a request of unknown outcome may have left. Close
	// releases in this way what is held. What remains of a MinHold or an Abandon after Close is not told. A panic is
	// logged.
	Settling func(e Event)
	// Settled is called when that is over; Event.Err is set if the client gave up. A panic is logged.
	Settled func(e Event)

	_ struct{}
}

// functions returns o as the client calls it.
func (o *Observer) functions() *shell.Listeners {
	return &shell.Listeners{
		Waiting: during(o.Waiting), Acquired: during(o.Acquired), Upgraded: during(o.Upgraded), Failed: during(o.Failed),
		Renewed: after(o.Renewed), RenewalFailed: after(o.RenewalFailed), Lost: after(o.Lost), Released: after(o.Released),
		Retained: after(o.Retained), RetentionEnded: after(o.RetentionEnded), Recalled: after(o.Recalled),
		Settling: after(o.Settling), Settled: after(o.Settled),
	}
}

// during is f as the client calls it, in the middle of a call. A function that is not there stays nil, and costs
// nothing.
func during(f func(context.Context, Event)) func(context.Context, shell.Facts) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, e shell.Facts) { f(ctx, eventFor(e)) }
}

// after is f as the client calls it, when something has happened.
func after(f func(Event)) func(shell.Facts) {
	if f == nil {
		return nil
	}
	return func(e shell.Facts) { f(eventFor(e)) }
}
