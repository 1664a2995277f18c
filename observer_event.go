package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// What an Observer gets: the Event, its identities, and the result of a call in one word. observer.go has the
// functions.

// Event is what an Observer is told. Kind, Name, Class and Engine are always set. The other fields that each function
// gets are listed here; those after "if so" are set only where they apply, and all others are zero.
//
//	Waiting         Call, Owner
//	Acquired        Hold, Owner, Token; if so: Waited, Queued, Call, Cond, Local
//	Upgraded        Hold, Owner, Token, Held; if so: Waited, Queued, Call
//	Failed          Err; if so: Hold, Owner, Token, Held, Waited, Queued, Call
//	Renewed         Hold, Owner, Token, Held, Remained, Margin; if so: Late, Waited, Local
//	RenewalFailed   Hold, Owner, Token, Held, Remained, Err; if so: Waited, Local
//	Lost            Hold, Owner, Token, Held, Err, Reason; if so: Waited, Local
//	Released        Hold, Owner, Token, Held; if so: Err, Waited, Local
//	Retained        Hold, Owner, Token, Held; if so: Waited, Local
//	RetentionEnded  Hold, Owner, Token
//	Recalled        Hold, Owner, Token, Held; if so: Waited, Local
//	Settling        if so: Undo
//	Settled         if so: Undo, Err
//
// A duration may be zero if it was too short to measure. Failed has Hold, Token and Held if an Upgrade has failed, and
// Owner if the owner existed before the call. Retained, RetentionEnded and Recalled of a retained lock describe the
// hold that was unlocked last.
type Event struct {
	Kind   Kind   // of the lock
	Name   string // of the lock
	Class  string // LockOptions.Class, "other" if there is none: a label for metrics, where Name is not one
	Engine string // the name of the engine: a label for metrics
	Owner  string // the name of the owner, or the id of an anonymous one
	Token  uint64 // the fencing token of the hold; an upgrade changes it
	Hold   HoldID // which hold it is
	Call   CallID // which call it is, if the call had to wait

	Waited   time.Duration // from the call to its end; later, how long the acquisition of the hold had taken
	Held     time.Duration // from the grant until now, or until the hold ended
	Remained time.Duration // how long the hold is still trusted if no renewal is confirmed
	Margin   time.Duration // how much of that was left just before this renewal was confirmed

	Queued bool // Waiting was called for this call
	Cond   bool // by Cond.Wait: Waited contains the wait for the signal
	Local  bool // passed on inside the process, without a request to the engine for this hold
	Late   bool // the renewal was confirmed when less than half of the lease was left: a near miss
	Undo   bool // an undo: there may be nothing to give back

	Reason LostReason // how the hold was lost; see there for the list
	Err    error      // why it failed, or what is not confirmed

	c *shell.Client // which tells the event; for Look

	_ struct{}
}

// Look tells who holds the lock of the event and who waits for it; see [Client.Look]. It asks the engine and waits for
// the answer, so an Observer calls it in a goroutine of its own and with a bounded ctx. When the answer comes the lock
// may have another holder, also the owner of the event itself.
func (e Event) Look(ctx context.Context) (LockInfo, error) {
	return publicOf(e.c).Look(ctx, e.Kind, e.Name)
}

// HoldID identifies a hold: all events of one hold have the same, and no other hold has it. Compare it with == or use
// it as the key of a map. It keeps the memory of the hold alive, so forget it after Lost or Released.
type HoldID struct{ lease *core.Hold }

// CallID identifies a call that has to wait: Waiting and the end of the same call have the same, and no other call has
// it. Compare it with == or use it as the key of a map.
type CallID struct{ call *core.Announcement }

// eventFor returns what the user is told of e.
func eventFor(e shell.Facts) Event {
	return Event{
		Kind: e.Kind, Name: e.Name, Class: e.Class, Engine: e.Engine, Owner: e.Owner, Token: e.Token,
		Hold: HoldID{e.Hold}, Call: CallID{e.Call},
		Waited: e.Waited, Held: e.Held, Remained: e.Remained, Margin: e.Margin,
		Queued: e.Queued, Cond: e.Cond, Local: e.Local, Late: e.Late, Undo: e.Undo,
		Reason: e.Reason, Err: e.Err, c: e.Client,
	}
}

// Result says in one word how a call for a lock has ended. It is a string from a closed set, for logs and metrics.
type Result string

// The results of a call.
const (
	ResultAcquired    Result = "acquired"    // there is a hold, or it was upgraded
	ResultHeld        Result = "held"        // a try: another owner holds the lock (ErrHeld)
	ResultCanceled    Result = "canceled"    // the context of a wait ended, by its deadline or otherwise
	ResultUnavailable Result = "unavailable" // the engine did not answer or could not be asked (ErrUnavailable)
	ResultRefused     Result = "refused"     // the engine said no (ErrRefused)
	ResultLost        Result = "lost"        // the owner has lost the lock and has not unlocked it yet (ErrLost)
	ResultReleased    Result = "released"    // the hold to upgrade was released (ErrReleased)
	ResultDeadlock    Result = "deadlock"    // the wait would never have ended (ErrDeadlock)
	ResultConflict    Result = "conflict"    // the lock is in use with other parameters (ErrConflict)
	ResultUnsupported Result = "unsupported" // the engine cannot do it (ErrUnsupported)
	ResultClosed      Result = "closed"      // the client is closed (ErrClosed)
	ResultInvalid     Result = "invalid"     // a name or an option is wrong, or anything else
)

// results are in the order in which they are checked, because an error may match several. A loss comes before what
// caused it, and a refusal before ErrUnavailable, which it also matches. A wait that its context has ended counts as
// canceled, although it also matches what it waited for.
var results = []struct {
	err    error
	result Result
}{
	{ErrLost, ResultLost},
	{ErrRefused, ResultRefused},
	{ErrUnavailable, ResultUnavailable},
	{context.Canceled, ResultCanceled},
	{context.DeadlineExceeded, ResultCanceled},
	{ErrDeadlock, ResultDeadlock},
	{ErrHeld, ResultHeld},
	{ErrReleased, ResultReleased},
	{ErrConflict, ResultConflict},
	{ErrUnsupported, ResultUnsupported},
	{ErrClosed, ResultClosed},
}

// Result says how the call ended that an Event of Acquired, Upgraded or Failed tells of.
func (e Event) Result() Result {
	if e.Err == nil {
		return ResultAcquired
	}
	for _, r := range results {
		if errors.Is(e.Err, r.err) {
			return r.result
		}
	}
	return ResultInvalid
}
