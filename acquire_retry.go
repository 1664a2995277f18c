package interlock

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What becomes of a fetch that brought nothing which anybody could use.

// returned gives back what nobody wants or what ended before it was taken in, and asks again for those who still wait.
// The caller holds Client.mu, which returned gives up. It does not wait.
func (f *fetch) returned(refused, wanted bool) {
	f.g.settle(refused)
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

// askAgain asks once more for f's waiter, if it still waits by then. Each attempt has a goroutine of its own: the one
// that failed may be the caller's.
func (f *fetch) askAgain(after time.Duration) {
	next := f.again()
	if next == nil {
		return
	}
	if after > 0 && !pause(next.ctx, after) { // its waiter has given up, or Close has answered it
		next.cancel()
		return
	}
	f.c.lock()
	next.idle = false
	f.c.unlock()
	next.run()
}

// again returns a fetch that asks for f's waiter once more, under a new id.
func (f *fetch) again() *fetch {
	f.c.lock()
	defer f.c.unlock()
	if !f.stillWanted() {
		return nil
	}
	next := f.c.newFetch(f.only, f.r.Try)
	next.only, next.idle, f.only.own = f.only, true, next
	return next
}

// failed decides what an error means for those who wait, and has the request undone if its outcome is unknown. The
// caller holds Client.mu, which failed gives up.
func (f *fetch) failed(err error, wanted bool) {
	c, q := f.c, f.q
	definite := driver.IsDefinite(err)
	again := wanted && f.sortOut(err, definite)
	if q != nil {
		q.tidy()
	}
	if !definite {
		f.g.settle(true)
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

// sortOut answers those who wait for f with err, except for whom the wait had begun, because they know who is in the
// way: their wait survives a broken connection, though their place in the engine's queue may be lost. It reports
// whether to ask again for them. Those whom the engine has never answered learn at once that it cannot be reached, and
// all of them that it refuses, because it would say the same again. The caller holds Client.mu.
func (f *fetch) sortOut(err error, definite bool) (again bool) {
	survives := !definite && driver.Refusal(err) == nil
	f.idle = true
	sort := func(w *waiter) {
		if survives && w.hasBegun() {
			w.broken, again = err, true
			w.doubt = w.doubt || leavesDoubt(err)
			return
		}
		w.answer(opened(explain(f.r.Key, err), w.doubt))
		if f.q != nil {
			f.q.remove(w)
		}
	}
	if f.only != nil {
		sort(f.only)
		return again
	}
	f.q.waiters.each(sort)
	return again
}

// opened is err of a wait of which it is unknown, if doubt, what became of an earlier attempt: then a refusal does not
// say that nothing was changed.
func opened(err error, doubt bool) error {
	if refused := driver.Refusal(err); refused != nil {
		open := *refused
		open.Open = open.Open || doubt
		return &open
	}
	return err
}

// explain says to the user what the engine's err means.
func explain(key driver.Key, err error) error {
	if driver.Refusal(err) != nil { // also one that the driver has wrapped
		return unavailable("lock", key, err)
	}
	if driver.IsDefinite(err) {
		return wrap("lock", key, err)
	}
	if errors.Is(err, ErrHeld) { // of a request that was repeated: it says nothing, and must not match ErrHeld
		err = errors.New(err.Error())
	}
	return unavailable("lock", key, err)
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

// orphaned takes in that the hold beside which f asks is over, as the engine says: so it is lost, unless it was given
// back meanwhile, and then its owner asks anew. The caller holds Client.mu.
func (f *fetch) orphaned(err error, wanted bool) {
	c, g := f.c, f.beside
	f.g.settle(true)
	if g.phase != gone {
		reason := driver.LostExpired
		if told := (*LostError)(nil); errors.As(err, &told) {
			reason = told.Reason
		}
		c.end(g, reason)
	}
	if w := f.only; wanted && !w.answered {
		if err := g.goneError(); errors.Is(err, ErrLost) {
			w.answer(err)
		} else {
			w.answer(errAgain)
		}
	}
	c.unlock()
}
