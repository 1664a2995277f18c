package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// fetch is one acquisition that is being asked of the engine: on behalf of a queue's line, or for one waiter alone (a
// try, or a named owner). A fetch for a line belongs to the queue and not to a waiter, so one that gives up does not
// cost the others their place. Undoing what a cancelled or ambiguous request may have left is the fetch's own duty,
// after the driver has returned.
type fetch struct {
	c      *Client
	q      *queue  // whose line it is for; nil if it is for one alone
	only   *waiter // whom it is for; nil for the line
	leader *waiter // in whose goroutine it is asked first; nil if in none's; guarded by Client.mu
	beside *grant  // beside which it is asked; nil if it is on its own
	r      driver.Request
	g      *grant          // what the engine's answer will make of it
	ctx    context.Context //nolint:containedctx // belongs to the request, whichever goroutine runs it
	cancel context.CancelFunc
	first  callContext     // what ctx is until the engine has answered in the goroutine of who has come first
	give   *driver.Release // to be given back in the same step; nil if nothing

	// Guarded by Client.mu.
	held      *HeldError // who is in the way, once the engine has said
	abandoned bool       // only does not wait any more
	idle      bool       // it is not under way: it has ended with an error, or is not asked yet
}

// newFetch prepares a request as w wants it. What operators see of a line is its first waiter, until a renewal
// refreshes it. The caller holds Client.mu.
func (c *Client) newFetch(w *waiter, try bool) *fetch {
	m := w.lease.m
	f := &fetch{c: c, beside: w.beside, r: m.request(w.requestID(), w.lease.owner)}
	f.g = &grant{m: m, id: f.r.ID, asked: m.p.lease, index: -1}
	f.r.Try, f.r.Waiting, f.r.Lost = try, f.waiting, f.g.lostByEngine
	f.g.tells(&f.r)
	if !c.traits.Resumes {
		f.ctx, f.cancel = context.WithCancel(c.base)
		return f
	}
	f.first.base = c.base
	f.ctx, f.cancel = &f.first, f.first.end
	return f
}

// waiting takes in who is in the way.
func (f *fetch) waiting(held *HeldError) {
	f.c.lock()
	defer f.c.unlockInside()
	f.held = held
	if f.only != nil {
		f.only.mustWait(held)
		return
	}
	if f.q.fetch != f { // given up meanwhile, so it says nothing to those who wait now
		return
	}
	f.q.waiters.each(func(w *waiter) { w.mustWait(held) })
}

// lead asks for f in the goroutine of w, who has come first, and waits there for as long as w does: each change of
// goroutines would cost as much as the engine's own work. What w leaves unfinished goes on in another goroutine if
// others stand in the line, because f belongs to the line and not to w. The caller has counted f as background under
// Client.mu.
func (f *fetch) lead(ctx context.Context, w *waiter) (*Lease, error) {
	if !f.c.traits.Resumes {
		go f.runInBackground()
		return w.wait(ctx)
	}
	f.first.setUser(ctx)
	answer, err := f.acquire(&f.first)
	if err != nil && f.first.Err() != nil && !driver.IsDefinite(err) {
		defer f.goOn(err) // once w has left the line
		return w.wait(ctx)
	}
	f.done(answer, err)
	f.c.background.Done()
	return w.wait(ctx)
}

// goOn asks again for who still stands in the line, at the same place of the engine's queue, after an err that came
// because the one who led has left. If there is nobody it ends f.
func (f *fetch) goOn(err error) {
	f.c.lock()
	wanted := f.only == nil && f.q.fetch == f && !f.c.closed
	if wanted {
		f.cancel()
		f.ctx, f.cancel = context.WithCancel(f.c.base)
	}
	f.c.unlock()
	if wanted {
		go f.runInBackground() // ends with f.ctx, which Close and the last waiter of the line end
		return
	}
	f.done(driver.Grant{}, err)
	f.c.background.Done()
}

func (f *fetch) runInBackground() {
	defer f.c.background.Done()
	f.run()
}

// run asks the engine and takes in its answer.
func (f *fetch) run() {
	answer, err := f.ask()
	f.done(answer, err)
}

// done takes the engine's answer to whom it is for. A hold that ended before that (an operator broke it, or this
// process stood still for longer than the lease) was never anybody's: it asks again.
func (f *fetch) done(answer driver.Grant, err error) {
	defer f.cancel()
	refused := errors.Is(err, ErrLost)
	f.c.lock()
	wanted := f.stillWanted()
	switch {
	case err != nil && !refused:
		f.failed(err, wanted)
	case refused && f.beside != nil:
		f.orphaned(err, wanted)
	case wanted && !refused && f.g.phase != revoked && !f.g.tooLate(answer, f.c.now()):
		f.granted(answer)
		f.c.unlock()
	default:
		f.returned(refused, wanted)
	}
}

// ask makes the request, together with the release that precedes it if there is one.
func (f *fetch) ask() (driver.Grant, error) {
	if f.give == nil {
		return f.acquire(f.ctx)
	}
	answer, err := f.c.requeuer.Requeue(f.ctx, f.give, &f.r)
	if err != nil {
		f.c.lock()
		f.c.settle(f.g.m, f.give)
		f.c.unlock()
	}
	return answer, err
}

// stillWanted takes the fetch off its queue and reports whether somebody waits for its answer. The caller holds
// Client.mu.
func (f *fetch) stillWanted() bool {
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
	old := f.c.passing(g.m)
	g.taken(answer, f.c.now())
	if f.held != nil || f.give != nil { // others may stand behind, and have told who held it then
		g.recalled = true
	}
	if f.only == nil {
		if old != nil {
			old.alone = true // the engine gave the lock to g, so that one is over although nobody has told us yet
		}
		f.q.serve(g, false)
		return
	}
	g.alone = f.r.Named || g.m.p.single || old != nil
	f.only.grant(g, false)
	g.admitOthers()
}

// acquire asks the engine for f.
func (f *fetch) acquire(ctx context.Context) (driver.Grant, error) {
	if f.beside != nil {
		return f.c.convert.Convert(ctx, f.beside.id, &f.r)
	}
	return f.c.d.Acquire(ctx, &f.r)
}
