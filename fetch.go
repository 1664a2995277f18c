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
	give   *driver.Release // to be given back in the same step; nil if nothing

	// Guarded by Client.mu.
	held      *HeldError // who is in the way, once the engine has said
	abandoned bool       // only does not wait any more
	lost      bool       // the engine took the hold back before the answer had been taken in
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
	f.r.Lost = f.lostByEngine
	return f
}

// waiting takes in who is in the way.
func (f *fetch) waiting(held *HeldError) {
	f.c.lock()
	defer f.c.unlock()
	f.held = held
	if f.only != nil {
		f.only.mustWait()
		return
	}
	f.q.begun = true
	for _, w := range f.q.waiters {
		w.mustWait()
	}
}

// lostByEngine takes in that the engine took the hold back.
func (f *fetch) lostByEngine(reason LostReason, cause error) {
	f.c.lock()
	defer f.c.unlock()
	if g := f.c.grants[f.r.ID]; g != nil {
		f.c.lose(g, reason, cause)
		return
	}
	f.lost = true
}

// run asks the engine and takes the answer to whom it is for. A hold that ended before that (an operator broke it, or this
// process stood still for longer than the lease) was never anybody's: it asks again.
func (f *fetch) run() {
	defer f.cancel()
	answer, err := f.ask()
	f.c.lock()
	wanted := f.stillWanted()
	if errors.Is(err, ErrLost) {
		f.lost, err = true, nil
	}
	switch {
	case err != nil:
		f.failed(err, wanted)
		return
	case wanted && !f.lost:
		f.granted(answer)
		f.c.unlock()
		return
	case f.only == nil:
		f.q.startFetch(nil)
		f.c.unlock()
		f.giveBack()
		return
	}
	f.c.unlock()
	f.giveBack()
	if wanted {
		f.again().run()
	}
}

// giveBack releases what the engine granted and nobody wants.
func (f *fetch) giveBack() {
	_, _ = f.c.settleNow(&driver.Release{Key: f.r.Key, ID: f.r.ID, Horizon: f.r.Lease})
}

// again returns a fetch that asks for f's waiter once more, under a new id.
func (f *fetch) again() *fetch {
	f.c.lock()
	defer f.c.unlock()
	next := newFetch(f.q, f.only)
	next.only, next.r.Try, next.abandoned = f.only, f.r.Try, f.abandoned
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
	return len(f.q.waiters) > 0
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
	again := false
	switch {
	case !wanted:
	case f.only != nil:
		f.only.answer(nil, f.explain(err, definite))
	case definite, f.held == nil && !q.begun:
		// Refused for good; or the engine has never answered these waiters, and they learn at once that it cannot be
		// reached.
		q.fail(f.explain(err, definite))
	default:
		// A wait that had begun survives a broken connection. Its place in the engine's queue may be lost.
		again = true
	}
	q.tidy()
	c.unlock()
	if !definite {
		c.settleLater(&driver.Release{Key: f.r.Key, ID: f.r.ID, Undo: true, Horizon: f.r.Lease})
	}
	if again {
		c.opts.Logger.Warn("interlock: asking again after an error while waiting",
			"lock", f.r.Name, "engine", c.traits.Engine, "err", err)
		q.fetchAgain()
	}
}

func (f *fetch) explain(err error, definite bool) error {
	if definite {
		return wrap("lock", f.r.Key, err)
	}
	return unavailable("lock", f.r.Key, err)
}

// retryPause is between two requests of a wait that survives errors: short enough that a server that has come back is
// used at once, long enough not to burden one that is coming back.
const retryPause = 100 * time.Millisecond

// fetchAgain waits a little and asks again. It runs in the goroutine of the fetch that failed.
func (q *queue) fetchAgain() {
	if !q.c.pause(q.c.base, retryPause) {
		return
	}
	q.c.lock()
	defer q.c.unlock()
	q.startFetch(nil)
}
