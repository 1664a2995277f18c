package shell

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// One acquisition on its way to the engine and back: who asks, in which goroutine, and what becomes of the answer.
// acquire_request.go says what is asked. A usable answer becomes a grant (internal/core/enginehold.go); everything else goes to
// acquire_retry.go.

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
	if !c.Machine.Traits.Resumes {
		f.Ctx, f.Cancel = context.WithCancel(c.renewCtx)
		return f
	}
	f.Call.Base = c.renewCtx
	f.Ctx, f.Cancel = &f.Call, f.Call.End
	return f
}

// toldWaiting is Request.Waiting. The driver calls it, from any goroutine, when the engine has said who holds the lock, and
// again when that changes.
func toldWaiting(f *core.Request, held *driver.HeldError) {
	clientOf(f.Core).Lock()
	defer clientOf(f.Core).unlockInside()
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

// leadRequest makes the request in the goroutine of w, who has come first, and waits there. Each change of goroutines would
// cost as much as the engine's own work. If w leaves while others stand in the line, another goroutine goes on, because
// f belongs to the line. The caller has counted f as background under Machine.Mu; whoever ends f counts it down.
func leadRequest(ctx context.Context, f *core.Request, w *core.Waiter) (*core.Hold, error) {
	if !clientOf(f.Core).Machine.Traits.Resumes {
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
	clientOf(f.Core).Machine.Background.Done()
	return waitFor(ctx, w)
}

// withdrawRequest notes that the candidate for which f asks is about to leave.
func withdrawRequest(f *core.Request) {
	clientOf(f.Core).Lock()
	defer clientOf(f.Core).Unlock()
	f.Withdrawn = true
}

// heardBefore notes for w, whose time is over, that nothing of the request was sent and why: what the server has
// answered to earlier tries says more than that the time is over.
func heardBefore(f *core.Request, w *core.Waiter, err error) {
	if !driver.IsNotSent(err) {
		return
	}
	clientOf(f.Core).Lock()
	defer clientOf(f.Core).Unlock()
	w.Broken, f.Idle = err, true
}

// goOnAlone repeats the request for those who still stand in the line, after err has ended it only because its leader has
// left. The id is the same, so the engine resumes the same place in its queue. Without anybody in line it ends f.
func goOnAlone(f *core.Request, err error) {
	clientOf(f.Core).Lock()
	wanted := f.Waiter == nil && f.Line.Request == f && !clientOf(f.Core).Machine.Closed
	if wanted {
		f.Idle = false
		f.Cancel()
		f.Ctx, f.Cancel = context.WithCancel(clientOf(f.Core).renewCtx)
	}
	clientOf(f.Core).Unlock()
	if wanted {
		go runInBackground(f) // ends with f.ctx, which Close and the last waiter of the line end
		return
	}
	requestDone(f, driver.Grant{}, err)
	clientOf(f.Core).Machine.Background.Done()
}

// runInBackground is run in a goroutine of the client. Close or the last waiter of the line ends it by f.cancel.
func runInBackground(f *core.Request) {
	defer clientOf(f.Core).Machine.Background.Done()
	runRequest(f)
}

// runRequest asks the engine and processes its answer. It blocks for as long as the driver does.
func runRequest(f *core.Request) {
	answer, err := askEngine(f)
	requestDone(f, answer, err)
}

// requestDone processes the engine's answer. A grant that is over before anybody got it is never handed out: the lock is asked
// for again. An operator may have broken it, or this process stood still for longer than its lease.
func requestDone(f *core.Request, answer driver.Grant, err error) {
	defer f.Cancel()
	defer tellOver(f)
	refused := errors.Is(err, driver.ErrLost)
	clientOf(f.Core).Lock()
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
	case wanted && !refused && f.Engine.Phase != grants.Revoked && !clientOf(f.Core).Machine.ExpiredOnArrival(answer, clientOf(f.Core).Machine.Now()):
		requestGranted(f, answer)
		clientOf(f.Core).Unlock()
	// Nobody wants it, or it is over: give it back, and ask again for the waiters.
	default:
		if wanted && !refused {
			wanted = heedLate(f, answer)
		}
		requestReturned(f, refused, wanted)
	}
}

// askEngine makes the request. If f has something to release, both travel in one step; if that step fails, the release is
// repeated by itself until it is known.
func askEngine(f *core.Request) (driver.Grant, error) {
	if f.Give == nil {
		return askDriver(f.Ctx, f)
	}
	answer, err := clientOf(f.Core).requeuer.Requeue(f.Ctx, f.Give, &f.Ask)
	if err != nil {
		clientOf(f.Core).Lock()
		clientOf(f.Core).Machine.ReleaseInBackground(f.Engine.Lock, f.Give)
		clientOf(f.Core).Unlock()
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
	g := f.Engine
	old := clientOf(f.Core).Machine.Passing(g.Lock)
	g.Accept(answer, clientOf(f.Core).Machine.Now())
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
	if f.Alongside != nil {
		return clientOf(f.Core).Convert.Convert(ctx, f.Alongside.ID, &f.Ask)
	}
	return clientOf(f.Core).Driver.Acquire(ctx, &f.Ask)
}
