package interlock

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// fetch is one acquisition that is being asked of the engine: on behalf of a queue's line, or for one waiter alone (a try,
// or a named owner). A fetch for a line belongs to the queue and not to a waiter, so one that gives up does not cost the
// others their place. Undoing what a cancelled or ambiguous request may have left is the fetch's own duty, after the
// driver has returned.
type fetch struct {
	c      *Client
	q      *queue
	only   *waiter // whom it is for; nil for the line
	r      *driver.Request
	ctx    context.Context //nolint:containedctx // belongs to the request, whichever goroutine runs it
	cancel context.CancelFunc
	claim  *claim
	give   *driver.Release // to be given back in the same step; nil if nothing

	// Guarded by Client.mu.
	held      *HeldError // who is in the way, once the engine has said
	abandoned bool       // only does not wait any more
}

// claim is what a driver keeps of us as long as a hold lasts, so it is small.
type claim struct {
	c    *Client
	id   string
	lost bool // the engine took the hold back before the answer had been taken in; guarded by Client.mu
}

// newID returns a request id: unique for ever, because the client's part is random.
func (c *Client) newID() string {
	return c.id + "." + strconv.FormatUint(c.lastID.Add(1), 36)
}

// newFetch prepares a request as w wants it. What operators see of a line is its first waiter, until a renewal refreshes
// it.
func newFetch(q *queue, w *waiter) *fetch {
	f := &fetch{c: q.c, q: q, r: w.request(q.c.newID())}
	f.ctx, f.cancel = context.WithCancel(q.c.base)
	f.r.Waiting = f.waiting
	f.claim = &claim{c: q.c, id: f.r.ID}
	f.r.Lost = f.claim.lostByEngine
	return f
}

// waiting takes in who is in the way.
func (f *fetch) waiting(held *HeldError) {
	f.c.lock()
	defer f.c.unlockHere()
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

// lostByEngine takes in that the engine took the hold back.
func (k *claim) lostByEngine(reason LostReason, cause error) {
	k.c.lock()
	defer k.c.unlockHere()
	if g := k.c.grants[k.id]; g != nil {
		k.c.lose(g, reason, cause)
		return
	}
	k.lost = true
}

// start runs f: in the caller's goroutine as far as the engine answers at once, which saves two switches of goroutines; a
// wait goes on in one of its own, because f belongs to the line and not to the caller. The caller has counted f as
// background under Client.mu.
func (f *fetch) start(ctx context.Context, w *waiter) {
	if f.c.starter == nil {
		go f.runInBackground()
		return
	}
	stop := context.AfterFunc(ctx, f.cancel)
	answer, waits, err := f.c.starter.Begin(f.ctx, f.r)
	if gaveUp := !stop(); gaveUp && err != nil && !driver.IsDefinite(err) {
		waits = true
	}
	if waits {
		f.goOn(w)
		go f.runInBackground() // ends with f.ctx, which Close and the last waiter of the line end
		return
	}
	f.done(answer, err)
	f.c.background.Done()
}

// goOn gives f another context if that of w, who has started it, has ended and others wait for it too.
func (f *fetch) goOn(w *waiter) {
	f.c.lock()
	defer f.c.unlock()
	line := &f.q.waiters
	others := line.length > 1 || line.length == 1 && line.first != w
	if f.ctx.Err() != nil && f.only == nil && f.q.fetch == f && others && !f.c.closed {
		f.ctx, f.cancel = context.WithCancel(f.c.base)
	}
}

func (f *fetch) runInBackground() {
	defer f.c.background.Done()
	f.run()
}

// done takes the engine's answer to whom it is for.
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
	case wanted && !refused && !f.claim.lost && !f.tooLate(answer):
		f.granted(answer)
		f.c.unlock()
	default:
		f.returned(refused, wanted)
	}
}

// tooLate reports that the trust window of answer is over before anybody got it. The caller holds Client.mu.
func (f *fetch) tooLate(answer driver.Grant) bool {
	if f.c.traits.Ends != driver.Leases {
		return false
	}
	now := f.c.now()
	return !now.Before(trustEnd(answer.Sent, answer.Lease).Add(-f.c.sleep.since(answer.Sent)))
}

// returned gives back what nobody wants or what ended before it was taken in, and asks again for those who still wait. The
// caller holds Client.mu, which returned gives up. It does not wait.
func (f *fetch) returned(refused, wanted bool) {
	f.c.settle(&driver.Release{Key: f.r.Key, ID: f.r.ID, Undo: refused, Horizon: f.r.Lease})
	if f.only == nil && !refused {
		f.q.startFetch(nil)
	}
	f.c.unlock()
	wait := time.Duration(0)
	if refused {
		wait = retryPause // an engine that refuses for ever is not to be asked without a pause
	}
	switch {
	case !wanted:
	case f.only != nil:
		f.c.spawn(func() { f.askAgain(wait) })
	case refused:
		f.c.spawn(f.q.fetchAgain)
	}
}

// askAgain asks once more for f's waiter, if it still waits by then. Each attempt has a goroutine of its own: the one that
// failed may be the caller's.
func (f *fetch) askAgain(after time.Duration) {
	next := f.again()
	if next == nil {
		return
	}
	if after > 0 && !pause(next.ctx, after) { // its waiter has given up, or Close has answered it
		next.cancel()
		return
	}
	next.run()
}

// again returns a fetch that asks for f's waiter once more, under a new id.
func (f *fetch) again() *fetch {
	f.c.lock()
	defer f.c.unlock()
	if !f.stillWanted() {
		return nil
	}
	next := newFetch(f.q, f.only)
	next.only, next.r.Try = f.only, f.r.Try
	f.only.own = next
	return next
}

// ask makes the request, together with the release that precedes it if there is one.
func (f *fetch) ask() (driver.Grant, error) {
	if f.give == nil {
		return f.c.d.Acquire(f.ctx, f.r)
	}
	answer, err := f.c.requeuer.Requeue(f.ctx, f.give, f.r)
	if err != nil {
		f.c.lock()
		f.c.settle(f.give)
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
	return f.q.waiters.length > 0
}

// granted makes the engine's answer a grant and serves it. The caller holds Client.mu.
func (f *fetch) granted(answer driver.Grant) {
	g := f.c.newGrant(f.r, answer)
	if f.only == nil {
		f.q.take(g)
		return
	}
	if !f.r.Named {
		if q := f.c.queueFor(f.only.m); q.grant == nil {
			q.grant, g.q = g, q
		}
	}
	f.only.grant(g, false)
	g.admitOthers()
}

// failed decides what an error means for those who wait, and has the request undone if its outcome is unknown. The caller
// holds Client.mu, which failed gives up.
func (f *fetch) failed(err error, wanted bool) {
	c, q := f.c, f.q
	definite := driver.IsDefinite(err)
	again := wanted && f.sortOut(err, definite)
	q.tidy()
	if !definite {
		c.settle(&driver.Release{Key: f.r.Key, ID: f.r.ID, Undo: true, Horizon: f.r.Lease})
	}
	c.unlock()
	if !again {
		return
	}
	c.opts.Logger.Warn("interlock: asking again after an error while waiting",
		"lock", f.r.Name, "engine", c.traits.Engine, "err", err)
	if f.only != nil {
		c.spawn(func() { f.askAgain(retryPause) })
		return
	}
	c.spawn(q.fetchAgain)
}

// sortOut answers those who wait for f with err, except for whom the wait had begun, because they know who is in the way:
// their wait survives a broken connection, though their place in the engine's queue may be lost. It reports whether to
// ask again for them. Those whom the engine has never answered learn at once that it cannot be reached. The caller holds
// Client.mu.
func (f *fetch) sortOut(err error, definite bool) (again bool) {
	sort := func(w *waiter) {
		if !definite && w.told != nil {
			w.broken, again = err, true
			return
		}
		w.answer(nil, f.explain(err, definite))
		f.q.remove(w)
	}
	if f.only != nil {
		sort(f.only)
		return again
	}
	f.q.waiters.each(sort)
	return again
}

func (f *fetch) explain(err error, definite bool) error {
	if definite {
		return wrap("lock", f.r.Key, err)
	}
	if errors.Is(err, ErrHeld) { // of a request that was repeated: it says nothing, and must not match ErrHeld
		err = errors.New(err.Error())
	}
	return unavailable("lock", f.r.Key, err)
}

// retryPause is between two requests of a wait that survives errors: short enough that a server that has come back is
// used at once, long enough not to burden one that is coming back.
const retryPause = 100 * time.Millisecond

// fetchAgain waits a little and asks again.
func (q *queue) fetchAgain() {
	if !pause(q.c.base, retryPause) {
		return
	}
	q.c.lock()
	defer q.c.unlock()
	q.startFetch(nil)
}
