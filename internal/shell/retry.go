package shell

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// What becomes of a fetch (acquire_fetch.go) whose answer nobody can use. It is undone if its outcome is unknown, and
// asked again for those who still wait. release_settle.go does the undoing.

// requestReturned gives back a grant that nobody wants, or that ended before it was used, and asks again for those who still
// wait. refused says that the engine itself reported the hold gone. The caller holds Machine.Mu, which returned gives
// up. It does not block.
func requestReturned(f *core.Request, refused, wanted bool) {
	undoRequest(f, refused)
	wanted = wanted && !f.Withdrawn
	// Without a refusal the line asks at once; after one it asks after a pause, below.
	if f.Waiter == nil && !refused {
		f.Line.StartRequest(nil)
	}
	clientOf(f.Core).Unlock()
	wait := time.Duration(0)
	if refused {
		wait = RetryPause // an engine that always refuses must not be asked without a pause
	}
	switch {
	case !wanted:
	case f.Waiter != nil:
		clientOf(f.Core).spawn(func() { askAgainAfter(f, wait) })
	case refused:
		clientOf(f.Core).spawn(func() { requestAgain(f.Line) })
	}
}

// undoRequest is EngineHold.ReleaseInBackground for what f has asked for; whoever waits for f.over hears when that is known. The caller holds
// Machine.Mu.
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
	c := clientOf(f.Core)
	if !c.Machine.ExpiredOnArrival(answer, c.Machine.Now()) || answer.Sent.IsZero() {
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

// askAgainAfter asks once more for f's waiter, if it still waits by then. Each attempt has a goroutine of its own, because
// the one that failed may have run in the caller's.
func askAgainAfter(f *core.Request, after time.Duration) {
	next := repeatRequest(f)
	if next == nil {
		return
	}
	if after > 0 && !Pause(next.Ctx, after) { // the waiter has left, or Close has answered it
		next.Cancel()
		return
	}
	clientOf(f.Core).Lock()
	withdrawn := next.Withdrawn
	next.Idle = withdrawn
	clientOf(f.Core).Unlock()
	if withdrawn { // it counts on nothing being sent
		next.Cancel()
		return
	}
	runRequest(next)
}

// repeatRequest returns a fetch that asks for f's waiter once more, or nil if it has left. It has a new id: the old one may
// have been undone, and an undone id is refused.
func repeatRequest(f *core.Request) *core.Request {
	clientOf(f.Core).Lock()
	defer clientOf(f.Core).Unlock()
	// A candidate that withdraws waits for f.over: another request, of which it does not know, might name it as the
	// leader.
	if f.Withdrawn || !detachRequest(f) {
		return nil
	}
	next := clientOf(f.Core).newRequest(f.Waiter, f.Ask.Try)
	next.Waiter, next.Idle, f.Waiter.Request = f.Waiter, true, next
	if f.Settling {
		next.Undone = f.Over
	}
	return next
}

// requestFailed decides what an error means for the waiters, and has the request undone if its outcome is unknown. The
// caller holds Machine.Mu, which failed gives up.
func requestFailed(f *core.Request, err error, wanted bool) {
	c, q := clientOf(f.Core), f.Line
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
		"lock", f.Ask.Name, "engine", c.Machine.Traits.Engine, "err", err)
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

// explain turns the engine's err into the error of Lock: definite errors keep their class, and all others are refusals
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

// retryPause is the pause between two requests of a wait that survives errors. It is short enough to use a server soon
// after it has come back, and long enough not to burden one that is coming back.
const RetryPause = 100 * time.Millisecond

// requestAgain waits for retryPause and asks on behalf of the line. It runs in a goroutine of its own; Close ends the
// pause.
func requestAgain(q *core.Line) {
	if !Pause(clientOf(q.Core).renewCtx, RetryPause) {
		return
	}
	clientOf(q.Core).Lock()
	defer clientOf(q.Core).Unlock()
	q.StartRequest(nil)
}

// besideEnded handles the engine's word that the hold beside which f asked is over. That hold is lost then, unless this
// process released it meanwhile: in that case its owner asks anew, on its own. The caller holds Machine.Mu, which
// orphaned gives up.
func besideEnded(f *core.Request, err error, wanted bool) {
	c, g := clientOf(f.Core), f.Alongside
	f.Engine.ReleaseInBackground(true)
	if g.Phase != grants.Gone {
		reason := driver.LostExpired
		if told := (*driver.LostError)(nil); errors.As(err, &told) {
			reason = told.Reason
		}
		c.Machine.LoseAndRelease(g, reason)
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
