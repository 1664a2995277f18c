package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// One acquisition on its way to the engine and back: who asks, in which goroutine, and what becomes of the answer.
// acquire_request.go says what is asked. A usable answer becomes a grant (core_grant.go); everything else goes to
// acquire_retry.go.

// newFetch prepares a request as w wants it. Operators see the owner and label of the line's first waiter until a
// renewal brings those of the actual holder. The caller holds Client.mu.
func (c *Client) newFetch(w *waiter, try bool) *fetch {
	m := w.lease.m
	f := &fetch{c: &c.core, beside: w.beside, r: m.request(w.requestID(), w.lease.owner)}
	f.g = m.newGrant(f.r.ID)
	f.r.Try, f.r.Waiting, f.r.Lost = try, f.waiting, f.g.lostByEngine
	f.g.askForRecalls(&f.r)
	if m.p.single {
		f.over = make(chan struct{})
	}
	// On such an engine a wait that is left loses its place in the queue. So the request gets a context that the end of
	// no caller's context touches, and lead asks in a goroutine of its own.
	if !c.traits.Resumes {
		f.ctx, f.cancel = context.WithCancel(c.base)
		return f
	}
	f.first.base = c.base
	f.ctx, f.cancel = &f.first, f.first.end
	return f
}

// waiting is Request.Waiting. The driver calls it, from any goroutine, when the engine has said who holds the lock, and
// again when that changes.
func (f *fetch) waiting(held *HeldError) {
	f.c.client().lock()
	defer f.c.client().unlockInside()
	f.held = held
	if f.only != nil {
		f.only.mustWait(held)
		return
	}
	if f.q.fetch != f { // given up meanwhile: old news for the present waiters
		return
	}
	f.q.waiters.each(func(w *waiter) { w.mustWait(held) })
}

// lead makes the request in the goroutine of w, who has come first, and waits there. Each change of goroutines would
// cost as much as the engine's own work. If w leaves while others stand in the line, another goroutine goes on, because
// f belongs to the line. The caller has counted f as background under Client.mu; whoever ends f counts it down.
func (f *fetch) lead(ctx context.Context, w *waiter) (*Lease, error) {
	if !f.c.client().traits.Resumes {
		go f.runInBackground()
		return w.wait(ctx)
	}
	f.first.setUser(ctx)
	answer, err := f.acquire(&f.first)
	// The request ended because w did, so the engine has refused nothing. goOn runs after wait, when w has left the
	// line and the rest of it is known.
	if err != nil && f.first.Err() != nil && !driver.IsDefinite(err) {
		f.heardBefore(w, err)
		if f.over != nil { // a candidate waits for the undo, which must have begun by then
			f.withdraw()
			f.goOn(err)
			return w.wait(ctx)
		}
		defer f.goOn(err)
		return w.wait(ctx)
	}
	f.done(answer, err)
	f.c.client().background.Done()
	return w.wait(ctx)
}

// withdraw notes that the candidate for which f asks is about to leave.
func (f *fetch) withdraw() {
	f.c.client().lock()
	defer f.c.client().unlock()
	f.withdrawn = true
}

// heardBefore notes for w, whose time is over, that nothing of the request was sent and why: what the server has
// answered to earlier tries says more than that the time is over.
func (f *fetch) heardBefore(w *waiter, err error) {
	if !driver.IsNotSent(err) {
		return
	}
	f.c.client().lock()
	defer f.c.client().unlock()
	w.broken, f.idle = err, true
}

// goOn repeats the request for those who still stand in the line, after err has ended it only because its leader has
// left. The id is the same, so the engine resumes the same place in its queue. Without anybody in line it ends f.
func (f *fetch) goOn(err error) {
	f.c.client().lock()
	wanted := f.only == nil && f.q.fetch == f && !f.c.client().closed
	if wanted {
		f.idle = false
		f.cancel()
		f.ctx, f.cancel = context.WithCancel(f.c.client().base)
	}
	f.c.client().unlock()
	if wanted {
		go f.runInBackground() // ends with f.ctx, which Close and the last waiter of the line end
		return
	}
	f.done(driver.Grant{}, err)
	f.c.client().background.Done()
}

// runInBackground is run in a goroutine of the client. Close or the last waiter of the line ends it by f.cancel.
func (f *fetch) runInBackground() {
	defer f.c.client().background.Done()
	f.run()
}

// run asks the engine and processes its answer. It blocks for as long as the driver does.
func (f *fetch) run() {
	answer, err := f.ask()
	f.done(answer, err)
}

// done processes the engine's answer. A grant that is over before anybody got it is never handed out: the lock is asked
// for again. An operator may have broken it, or this process stood still for longer than its lease.
func (f *fetch) done(answer driver.Grant, err error) {
	defer f.cancel()
	defer f.tellOver()
	refused := errors.Is(err, ErrLost)
	f.c.client().lock()
	wanted := f.detach()
	switch {
	// The engine did not answer, or said no.
	case err != nil && !refused:
		f.failed(err, wanted)
	// The hold beside which f asked is over; its owner must hear of that.
	case refused && f.beside != nil:
		f.orphaned(err, wanted)
	// A grant that still has trust, and somebody who wants it. All three are checked under one Client.mu, or a loss
	// that is reported in between would be missed.
	case wanted && !refused && f.g.Phase != grants.Revoked && !f.c.client().tooLate(answer, f.c.client().now()):
		f.granted(answer)
		f.c.client().unlock()
	// Nobody wants it, or it is over: give it back, and ask again for the waiters.
	default:
		if wanted && !refused {
			wanted = f.heedLate(answer)
		}
		f.returned(refused, wanted)
	}
}

// ask makes the request. If f has something to release, both travel in one step; if that step fails, the release is
// repeated by itself until it is known.
func (f *fetch) ask() (driver.Grant, error) {
	if f.give == nil {
		return f.acquire(f.ctx)
	}
	answer, err := f.c.client().requeuer.Requeue(f.ctx, f.give, &f.r)
	if err != nil {
		f.c.client().lock()
		f.c.client().settle(f.g.m, f.give)
		f.c.client().unlock()
	}
	return answer, err
}

// detach detaches the fetch from its queue and reports whether somebody waits for its answer. The caller holds
// Client.mu.
func (f *fetch) detach() bool {
	if f.only != nil {
		return !f.abandoned && !f.only.answered
	}
	if f.q.fetch != f {
		return false
	}
	f.q.fetch = nil
	return f.q.waiters.first != nil
}

// granted makes the engine's answer a grant and serves it. The caller holds Client.mu.
func (f *fetch) granted(answer driver.Grant) {
	g := f.g
	old := f.c.client().passing(g.m)
	g.taken(answer, f.c.client().now())
	// It came after a wait, so others may stand behind in the engine's queue. They have told the previous holder and
	// not this one, so the grant must not be retained.
	if f.held != nil || f.give != nil {
		g.Recalled = true
	}
	if f.only == nil {
		// The engine gave the lock to g, so old is over although its loss has not been reported yet.
		if old != nil {
			old.Alone = true
		}
		f.q.serve(g, false)
		return
	}
	// Named owners and candidates never pass on. Nor does g beside an older grant of this lock: two grants would serve
	// one line.
	g.Alone = f.r.Named || g.m.p.single || old != nil
	f.only.grant(g, false)
	g.admitOthers()
}

// acquire calls the driver. A conversion names the grant beside which it asks, so that the engine treats both as one
// owner's.
func (f *fetch) acquire(ctx context.Context) (driver.Grant, error) {
	if f.beside != nil {
		return f.c.client().convert.Convert(ctx, f.beside.ID, &f.r)
	}
	return f.c.client().d.Acquire(ctx, &f.r)
}
