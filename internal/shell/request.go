package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// One acquisition on its way to the engine and back: who asks, in which goroutine, and what becomes of the answer.
// A usable answer becomes a grant (internal/core/enginehold.go); everything else
// goes to requestReturned.

// newRequest prepares a request as w wants it. Operators see the owner and label of the line's first waiter until a
// renewal brings those of the actual holder. The caller holds Machine.Mu.
func (c *Client) newRequest(w *core.Waiter, try bool) *core.Request {
	m := w.Hold.Lock
	f := &core.Request{Core: &c.Machine, Alongside: w.Alongside, Ask: DriverRequest(m, requestID(w), w.Hold.Owner)}
	f.Engine = m.NewEngineHold(f.Ask.ID)
	f.Ask.Try, f.Ask.Lost = try, LossOf(f.Engine)
	f.Ask.Waiting = func(held *driver.HeldError) { toldWaiting(f, held) }
	askForRecalls(f.Engine, &f.Ask)
	if m.Terms.Single {
		f.Over = make(chan struct{})
	}
	// On such an engine a wait that is left loses its place in the queue. So the request gets a context that the end of
	// no caller's context touches, and lead asks in a goroutine of its own.
	if !c.Traits.Resumes {
		f.Ctx, f.Cancel = context.WithCancel(c.renewCtx)
		return f
	}
	f.Call.Base = c.renewCtx
	f.Ctx, f.Cancel = &f.Call, f.Call.End
	return f
}

// toldWaiting is Request.Waiting. The driver calls it, from any goroutine, when the engine has said who holds the lock,
// and again when that changes.
func toldWaiting(f *core.Request, held *driver.HeldError) {
	c := clientAround(f.Core)
	c.Lock()
	defer c.unlockInside()
	f.Held = held
	if f.Waiter != nil {
		f.Waiter.MustWait(held)
		return
	}
	if f.Line.Request != f { // given up meanwhile: old news for the present waiters
		return
	}
	f.Line.Waiters.Each(func(w *core.Waiter) { w.MustWait(held) })
}

// leadRequest makes the request in the goroutine of w, who has come first, and waits there. Each change of goroutines
// would cost as much as the engine's own work. If w leaves while others stand in the line, another goroutine goes on,
// because f belongs to the line. The caller has counted f as background under Machine.Mu; whoever ends f counts it
// down.
func leadRequest(ctx context.Context, f *core.Request, w *core.Waiter) (*core.Hold, error) {
	c := clientAround(f.Core)
	if !c.Traits.Resumes {
		go runInBackground(f)
		return waitFor(ctx, w)
	}
	f.Call.SetUser(ctx)
	answer, err := askDriver(&f.Call, f)
	// The request ended because w did, so the engine has refused nothing. goOn runs after wait, when w has left the
	// line and the rest of it is known.
	if err != nil && f.Call.Err() != nil && !driver.IsDefinite(err) {
		heardBefore(f, w, err)
		if f.Over != nil { // a candidate waits for the undo, which must have begun by then
			withdrawRequest(f)
			goOnAlone(f, err)
			return waitFor(ctx, w)
		}
		defer goOnAlone(f, err)
		return waitFor(ctx, w)
	}
	requestDone(f, answer, err)
	c.Background.Done()
	return waitFor(ctx, w)
}

// withdrawRequest notes that the candidate for which f asks is about to leave.
func withdrawRequest(f *core.Request) {
	c := clientAround(f.Core)
	c.Lock()
	defer c.Unlock()
	f.Withdrawn = true
}

// heardBefore notes for w, whose time is over, that nothing of the request was sent and why: what the server has
// answered to earlier tries says more than that the time is over.
func heardBefore(f *core.Request, w *core.Waiter, err error) {
	c := clientAround(f.Core)
	if !driver.IsNotSent(err) {
		return
	}
	c.Lock()
	defer c.Unlock()
	w.Broken, f.Idle = err, true
}

// goOnAlone repeats the request for those who still stand in the line, after err has ended it only because its leader
// has left. The id is the same, so the engine resumes the same place in its queue. Without anybody in line it ends f.
func goOnAlone(f *core.Request, err error) {
	c := clientAround(f.Core)
	c.Lock()
	wanted := f.Waiter == nil && f.Line.Request == f && !c.Closed
	if wanted {
		f.Idle = false
		f.Cancel()
		f.Ctx, f.Cancel = context.WithCancel(c.renewCtx)
	}
	c.Unlock()
	if wanted {
		go runInBackground(f) // ends with f.ctx, which Close and the last waiter of the line end
		return
	}
	requestDone(f, driver.Grant{}, err)
	c.Background.Done()
}

// runInBackground is run in a goroutine of the client. Close or the last waiter of the line ends it by f.cancel.
func runInBackground(f *core.Request) {
	defer clientAround(f.Core).Background.Done()
	runRequest(f)
}

// runRequest asks the engine and processes its answer. It blocks for as long as the driver does.
func runRequest(f *core.Request) {
	answer, err := askEngine(f)
	requestDone(f, answer, err)
}

// requestDone processes the engine's answer. A grant that is over before anybody got it is never handed out: the lock
// is asked for again. An operator may have broken it, or this process stood still for longer than its lease.
func requestDone(f *core.Request, answer driver.Grant, err error) {
	c := clientAround(f.Core)
	defer f.Cancel()
	defer tellOver(f)
	refused := errors.Is(err, driver.ErrLost)
	c.Lock()
	wanted := detachRequest(f)
	switch {
	// The engine did not answer, or said no.
	case err != nil && !refused:
		requestFailed(f, err, wanted)
	// The hold beside which f asked is over; its owner must hear of that.
	case refused && f.Alongside != nil:
		besideEnded(f, err, wanted)
	// A grant that still has trust, and somebody who wants it. All three are checked under one Machine.Mu, or a loss
	// that is reported in between would be missed.
	case wanted && !refused && f.Engine.Phase != grants.Revoked && !c.ExpiredOnArrival(answer, c.Now()):
		requestGranted(f, answer)
		c.Unlock()
	// Nobody wants it, or it is over: give it back, and ask again for the waiters.
	default:
		if wanted && !refused {
			wanted = heedLate(f, answer)
		}
		requestReturned(f, refused, wanted)
	}
}

// askEngine makes the request. If f has something to release, both travel in one step; if that step fails, the release
// is repeated by itself until it is known.
func askEngine(f *core.Request) (driver.Grant, error) {
	c := clientAround(f.Core)
	if f.Give == nil {
		return askDriver(f.Ctx, f)
	}
	answer, err := c.requeuer.Requeue(f.Ctx, f.Give, &f.Ask)
	if err != nil {
		c.Lock()
		c.ReleaseInBackground(f.Engine.Lock, f.Give)
		c.Unlock()
	}
	return answer, err
}

// detachRequest detaches the fetch from its queue and reports whether somebody waits for its answer. The caller holds
// Machine.Mu.
func detachRequest(f *core.Request) bool {
	if f.Waiter != nil {
		return !f.Abandoned && !f.Waiter.Answered
	}
	if f.Line.Request != f {
		return false
	}
	f.Line.Request = nil
	return f.Line.Waiters.First != nil
}

// requestGranted makes the engine's answer a grant and serves it. The caller holds Machine.Mu.
func requestGranted(f *core.Request, answer driver.Grant) {
	c := clientAround(f.Core)
	g := f.Engine
	old := c.Passing(g.Lock)
	g.Accept(answer, c.Now())
	// It came after a wait, so others may stand behind in the engine's queue. They have told the previous holder and
	// not this one, so the grant must not be retained.
	if f.Held != nil || f.Give != nil {
		g.Recalled = true
	}
	if f.Waiter == nil {
		// The engine gave the lock to g, so old is over although its loss has not been reported yet.
		if old != nil {
			old.Alone = true
		}
		f.Line.Serve(g, false)
		return
	}
	// Named owners and candidates never pass on. Nor does g beside an older grant of this lock: two grants would serve
	// one line.
	g.Alone = f.Ask.Named || g.Lock.Terms.Single || old != nil
	f.Waiter.Grant(g, false)
	g.AddSameOwner()
}

// askDriver calls the driver. A conversion names the grant beside which it asks, so that the engine treats both as one
// owner's.
func askDriver(ctx context.Context, f *core.Request) (driver.Grant, error) {
	c := clientAround(f.Core)
	if f.Alongside != nil {
		return c.Convert.Convert(ctx, f.Alongside.ID, &f.Ask)
	}
	return c.Driver.Acquire(ctx, &f.Ask)
}

// What a request to the engine says. The id that is made here names the
// hold until it is released (internal/core/enginehold.go).

// firstPasses is how many passes are asked for at first. A client that has used them up while others wait asks for
// all of LocalHandoffs the next time. The tokens of a block that are not used run ahead of the engine's clock.
// Until the clock has caught up, at one microsecond for each, acquisitions get a single token.
const firstPasses = 63

// DriverRequest describes to the engine a hold on m for o. Only a mutex of an anonymous owner asks for a block of
// tokens. The engine re-enters named owners by itself, and readers, writers and permits never pass on inside the
// process.
func DriverRequest(m *core.Lock, id string, o *core.Owner) driver.Request {
	c := ClientOf(m)
	r := driver.Request{
		Key: m.Key(), ID: id, Owner: o.ID, Named: o.Named,
		Client: c.Config.ClientName, Label: m.Terms.Label,
		Mode: driver.Exclusive, Limit: 1, Weight: 1, Lease: m.Terms.Lease, LockDelay: m.Terms.LockDelay, Tokens: 1,
	}
	if m.Terms.Share.Direct {
		r.Mode, r.Limit, r.Weight = m.Terms.Share.Mode, m.Terms.Share.Limit, m.Terms.Share.Weight
		return r
	}
	if !o.Named && !m.Terms.NoRenew && !m.Terms.Single && c.Config.LocalHandoffs > 0 {
		r.Tokens = min(c.Config.LocalHandoffs, firstPasses) + 1
		if m.Terms.Retain > 0 {
			r.Tokens = core.RetainTokens
		}
	}
	return r
}

// askForRecalls asks the engine to report when another client wants g, if the engine can. It does so for every
// exclusive hold of an anonymous owner, because Lease.Wanted shows it. Retains marks those that the client may keep
// after their Unlock.
func askForRecalls(g *core.EngineHold, r *driver.Request) {
	c := g.Lock.Core
	if c.Recalls && r.Mode == driver.Exclusive && !r.Named {
		r.Wanted, r.Retains = func() { wantedByOther(g) }, g.Lock.Terms.Retain > 0
		g.Recallable = r.Retains
	}
}

// NewID returns a request id. It is unique for ever: a random part for each client, and a counter. Ids are never
// reused, because a late copy of an old request would then act on a new hold.
func (c *Client) NewID() string {
	var space [40]byte // larger than any id, so that there is one allocation and not three
	return string(strconv.AppendUint(append(append(space[:0], c.ID...), '.'), c.lastID.Add(1), 32))
}

// requestID returns the id for a request that w makes. The first request of an anonymous owner uses the owner's own id,
// so that a hold keeps one string for both. Repetitions need a new one. The caller holds Machine.Mu.
func requestID(w *core.Waiter) string {
	if !w.Fresh {
		return ClientOf(w.Hold.Lock).NewID()
	}
	w.Fresh = false
	return w.Hold.Owner.ID
}

// What becomes of a request whose answer nobody can use. It is undone if its outcome is unknown, and
// asked again for those who still wait. SettleNow does the undoing.

// requestReturned gives back a grant that nobody wants, or that ended before it was used, and asks again for those who
// still wait. refused says that the engine itself reported the hold gone. The caller holds Machine.Mu, which returned
// gives up. It does not block.
func requestReturned(f *core.Request, refused, wanted bool) {
	c := clientAround(f.Core)
	undoRequest(f, refused)
	wanted = wanted && !f.Withdrawn
	// Without a refusal the line asks at once; after one it asks after a pause, below.
	if f.Waiter == nil && !refused {
		f.Line.StartRequest(nil)
	}
	c.Unlock()
	wait := time.Duration(0)
	if refused {
		wait = RetryPause // an engine that always refuses must not be asked without a pause
	}
	switch {
	case !wanted:
	case f.Waiter != nil:
		c.spawn(func() { askAgainAfter(f, wait) })
	case refused:
		c.spawn(func() { requestAgain(f.Line) })
	}
}

// undoRequest is EngineHold.ReleaseInBackground for what f has asked for; whoever waits for f.over hears when that is
// known. The caller holds Machine.Mu.
func undoRequest(f *core.Request, undo bool) {
	give := f.Engine.ReleaseRequest()
	give.Undo = undo
	f.Settling = true
	f.Core.Emit(core.Effect{Verb: core.SendRelease, Lock: f.Engine.Lock, Give: give, Done: f.Over})
}

// tellOver tells a candidate that nothing is left of f, unless the release that settles it will.
func tellOver(f *core.Request) {
	if f.Over != nil && !f.Settling {
		close(f.Over)
	}
}

// mostLate is how many grants of a try may be over before it gets them. One may have had a slow answer; after another
// the round trip is longer than the lease, and asking again brings no other answer.
const mostLate = 2

// heedLate notes for the waiters of f that its answer, a grant, was over before they got it, if that is so. It reports
// whether to ask again for them. The caller holds Machine.Mu.
func heedLate(f *core.Request, answer driver.Grant) (again bool) {
	c := clientAround(f.Core)
	if !c.ExpiredOnArrival(answer, c.Now()) || answer.Sent.IsZero() {
		return true
	}
	late := &lateError{f.Ask.Key, answer.Lease, time.Since(answer.Sent)}
	if f.Waiter == nil {
		f.Line.Waiters.Each(func(w *core.Waiter) { w.Broken = late })
		return true
	}
	w := f.Waiter
	w.Broken = late
	if w.Late++; !f.Ask.Try || w.Late < mostLate {
		return true
	}
	w.Answer(late)
	return false
}

// lateError says that the engine grants a lock, but that each grant is over before its answer is here. It matches
// ErrUnavailable.
type lateError struct {
	key         driver.Key
	lease, trip time.Duration
}

// Error says how long both are, and what to do.
func (e *lateError) Error() string {
	return fmt.Sprintf("lock %q: the engine granted it, but for a lease of %v, which was over before the answer came "+
		"after %v: ask for a lease of several round trips", e.key.Name, e.lease, e.trip.Round(time.Millisecond))
}

// Unwrap makes it what an engine is that does not answer in time.
func (e *lateError) Unwrap() error { return &driver.UnavailableError{Op: "lock", Name: e.key.Name} }

// askAgainAfter asks once more for f's waiter, if it still waits by then. Each attempt has a goroutine of its own,
// because the one that failed may have run in the caller's.
func askAgainAfter(f *core.Request, after time.Duration) {
	c := clientAround(f.Core)
	next := repeatRequest(f)
	if next == nil {
		return
	}
	if after > 0 && !Pause(next.Ctx, after) { // the waiter has left, or Close has answered it
		next.Cancel()
		return
	}
	c.Lock()
	withdrawn := next.Withdrawn
	next.Idle = withdrawn
	c.Unlock()
	if withdrawn { // it counts on nothing being sent
		next.Cancel()
		return
	}
	runRequest(next)
}

// repeatRequest returns a fetch that asks for f's waiter once more, or nil if it has left. It has a new id: the old one
// may have been undone, and an undone id is refused.
func repeatRequest(f *core.Request) *core.Request {
	c := clientAround(f.Core)
	c.Lock()
	defer c.Unlock()
	// A candidate that withdraws waits for f.over: another request, of which it does not know, might name it as the
	// leader.
	if f.Withdrawn || !detachRequest(f) {
		return nil
	}
	next := c.newRequest(f.Waiter, f.Ask.Try)
	next.Waiter, next.Idle, f.Waiter.Request = f.Waiter, true, next
	if f.Settling {
		next.Undone = f.Over
	}
	return next
}

// requestFailed decides what an error means for the waiters, and has the request undone if its outcome is unknown. The
// caller holds Machine.Mu, which failed gives up.
func requestFailed(f *core.Request, err error, wanted bool) {
	c, q := clientAround(f.Core), f.Line
	definite := driver.IsDefinite(err)
	told, again := false, false
	if wanted {
		told, again = sortOut(f, err, definite)
	}
	if q != nil {
		q.Tidy()
	}
	// The engine may have granted the request or kept a place for it. Both would block others until they end by
	// themselves.
	if !definite {
		undoRequest(f, true)
	}
	c.Unlock()
	if !again {
		return
	}
	c.Config.Logger.Log(c.renewCtx, onceWarn(told), "interlock: asking again after an error while waiting",
		"lock", f.Ask.Name, "engine", c.Traits.Engine, "err", err)
	if f.Waiter != nil {
		c.spawn(func() { askAgainAfter(f, RetryPause) })
		return
	}
	c.spawn(func() { requestAgain(q) })
}

// sortOut answers the waiters of f with err, or keeps them waiting. It reports whether to ask again for them, and
// whether that is so after an error already.
//
// A wait survives err if it had begun, that is if the waiter knows who is in the way, and if err is neither definite
// nor a refusal. Its place in the engine's queue may be lost. A waiter that the engine has never answered learns at
// once that the engine cannot be reached. A refusal ends every wait, because the engine would say the same again. The
// caller holds Machine.Mu.
func sortOut(f *core.Request, err error, definite bool) (told, again bool) {
	if f.Withdrawn { // its waiter knows already what to say
		return false, false
	}
	survives := !definite && driver.Refusal(err) == nil
	f.Idle = true
	sort := func(w *core.Waiter) {
		if survives && w.HasBegun() {
			told = told || w.Broken != nil
			w.Broken, again = err, true
			w.Doubt = w.Doubt || leavesDoubt(err)
			return
		}
		w.Answer(markOpen(Explain(f.Ask.Key, err), w.Doubt))
		if f.Line != nil {
			f.Line.Remove(w)
		}
	}
	if f.Waiter != nil {
		sort(f.Waiter)
		return told, again
	}
	f.Line.Waiters.Each(sort)
	return told, again
}

// markOpen returns err of a wait, marked as open if doubt says that the outcome of an earlier attempt is unknown. A
// refusal then does not prove that nothing was changed.
func markOpen(err error, doubt bool) error {
	if refused := driver.Refusal(err); refused != nil {
		open := *refused
		open.Open = open.Open || doubt
		return &open
	}
	return err
}

// Explain turns the engine's err into the error of Lock: definite errors keep their class, and all others are refusals
// or unavailable.
func Explain(key driver.Key, err error) error {
	if driver.Refusal(err) != nil { // also one that the driver has wrapped
		return Unavailable("lock", key, err)
	}
	if driver.IsDefinite(err) {
		return Wrap("lock", key, err)
	}
	// A driver that repeated the request by itself got this answer to one copy; another may have been granted. So it
	// proves nothing and must not match ErrHeld.
	if errors.Is(err, driver.ErrHeld) {
		err = errors.New(err.Error())
	}
	return Unavailable("lock", key, err)
}

// RetryPause is the pause between two requests of a wait that survives errors. It is short enough to use a server soon
// after it has come back, and long enough not to burden one that is coming back.
const RetryPause = 100 * time.Millisecond

// requestAgain waits for RetryPause and asks on behalf of the line. It runs in a goroutine of its own; Close ends the
// pause.
func requestAgain(q *core.Line) {
	c := clientAround(q.Core)
	if !Pause(c.renewCtx, RetryPause) {
		return
	}
	c.Lock()
	defer c.Unlock()
	q.StartRequest(nil)
}

// besideEnded handles the engine's word that the hold beside which f asked is over. That hold is lost then, unless this
// process released it meanwhile: in that case its owner asks anew, on its own. The caller holds Machine.Mu, which
// orphaned gives up.
func besideEnded(f *core.Request, err error, wanted bool) {
	c, g := clientAround(f.Core), f.Alongside
	f.Engine.ReleaseInBackground(true)
	if g.Phase != grants.Gone {
		reason := driver.LostExpired
		if told := (*driver.LostError)(nil); errors.As(err, &told) {
			reason = told.Reason
		}
		c.LoseAndRelease(g, reason)
	}
	if w := f.Waiter; wanted && !w.Answered {
		if err := g.GoneError(); errors.Is(err, driver.ErrLost) {
			w.Answer(err)
		} else {
			w.Answer(core.ErrAgain)
		}
	}
	c.Unlock()
}
