package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// What users are told: the functions of an Observer, and what each gets. internal/shell/tell.go says how and when they
// are called.

// Observer is told what happens to locks: the hook for metrics, traces and tests. nil functions are skipped. They are
// called from many goroutines at once, never while a mutex of the client is held. They must not block: the caller of
// Lock or Unlock waits for them. They may use leases, but must not call Close, which waits for them. [Event] says which
// of its fields are set in which function, and [JoinObservers] makes one Observer of several. New and Open copy it: a
// later change of the struct has no effect on the client.
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
		Waiting: during(
			o.Waiting,
		),
		Acquired: during(o.Acquired),
		Upgraded: during(o.Upgraded),
		Failed:   during(o.Failed),
		Renewed: after(
			o.Renewed,
		),
		RenewalFailed:  after(o.RenewalFailed),
		Lost:           after(o.Lost),
		Released:       after(o.Released),
		Retained:       after(o.Retained),
		RetentionEnded: after(o.RetentionEnded),
		Recalled:       after(o.Recalled),
		Settling:       after(o.Settling),
		Settled:        after(o.Settled),
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

// Several Observers as one.

// JoinObservers returns an Observer that tells each of the given ones, in order; nil ones are skipped. If one panics,
// the others are told all the same, and then the panic does what [Observer] says. A function that only one of them has
// costs nothing more.
func JoinObservers(observers ...*Observer) *Observer {
	var all []*Observer
	for _, o := range observers {
		if o != nil {
			all = append(all, o)
		}
	}
	with := func(get func(*Observer) func(context.Context, Event)) func(context.Context, Event) {
		functions := functionsOf(all, get)
		if len(functions) < 2 {
			return single(functions)
		}
		return func(ctx context.Context, e Event) {
			inTurn(len(functions), func(i int) { functions[i](ctx, e) })
		}
	}
	on := func(get func(*Observer) func(Event)) func(Event) {
		functions := functionsOf(all, get)
		if len(functions) < 2 {
			return single(functions)
		}
		return func(e Event) {
			inTurn(len(functions), func(i int) { functions[i](e) })
		}
	}
	return &Observer{
		Waiting:        with(func(o *Observer) func(context.Context, Event) { return o.Waiting }),
		Acquired:       with(func(o *Observer) func(context.Context, Event) { return o.Acquired }),
		Upgraded:       with(func(o *Observer) func(context.Context, Event) { return o.Upgraded }),
		Failed:         with(func(o *Observer) func(context.Context, Event) { return o.Failed }),
		Renewed:        on(func(o *Observer) func(Event) { return o.Renewed }),
		RenewalFailed:  on(func(o *Observer) func(Event) { return o.RenewalFailed }),
		Lost:           on(func(o *Observer) func(Event) { return o.Lost }),
		Released:       on(func(o *Observer) func(Event) { return o.Released }),
		Retained:       on(func(o *Observer) func(Event) { return o.Retained }),
		RetentionEnded: on(func(o *Observer) func(Event) { return o.RetentionEnded }),
		Recalled:       on(func(o *Observer) func(Event) { return o.Recalled }),
		Settling:       on(func(o *Observer) func(Event) { return o.Settling }),
		Settled:        on(func(o *Observer) func(Event) { return o.Settled }),
	}
}

// functionsOf returns the function that get picks, of each Observer that has it.
func functionsOf[F func(Event) | func(context.Context, Event)](all []*Observer, get func(*Observer) F) (functions []F) {
	for _, o := range all {
		if f := get(o); f != nil {
			functions = append(functions, f)
		}
	}
	return functions
}

// single returns the only function, or nil if there is none: an Observer without a function costs nothing, so it stays
// nil.
func single[F any](functions []F) (f F) {
	if len(functions) > 0 {
		f = functions[0]
	}
	return f
}

// inTurn calls call for each number below n. The rest after a call is deferred, so that a panic goes on only when all
// of them have been called.
func inTurn(n int, call func(i int)) {
	var from func(i int)
	from = func(i int) {
		if i+1 < n {
			defer from(i + 1)
		}
		call(i)
	}
	from(0)
}
