package interlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// What becomes of a fetch (acquire_fetch.go) whose answer nobody can use. It is undone if its outcome is unknown, and
// asked again for those who still wait. release_settle.go does the undoing.

// returned gives back a grant that nobody wants, or that ended before it was used, and asks again for those who still
// wait. refused says that the engine itself reported the hold gone. The caller holds Client.mu, which returned gives
// up. It does not block.
func (f *fetch) returned(refused, wanted bool) {
	f.settle(refused)
	wanted = wanted && !f.withdrawn
	// Without a refusal the line asks at once; after one it asks after a pause, below.
	if f.only == nil && !refused {
		f.q.startFetch(nil)
	}
	f.c.client().unlock()
	wait := time.Duration(0)
	if refused {
		wait = retryPause // an engine that always refuses must not be asked without a pause
	}
	switch {
	case !wanted:
	case f.only != nil:
		f.c.client().spawn(func() { f.askAgain(wait) })
	case refused:
		f.c.client().spawn(f.q.fetchAgain)
	}
}

// settle is grant.settle for what f has asked for; whoever waits for f.over hears when that is known. The caller holds
// Client.mu.
func (f *fetch) settle(undo bool) {
	give := f.g.releaseRequest()
	give.Undo = undo
	f.settling = true
	f.c.emit(effect{verb: sendRelease, m: f.g.m, give: give, done: f.over})
}

// tellOver tells a candidate that nothing is left of f, unless the release that settles it will.
func (f *fetch) tellOver() {
	if f.over != nil && !f.settling {
		close(f.over)
	}
}

// mostLate is how many grants of a try may be over before it gets them. One may have had a slow answer; after another
// the round trip is longer than the lease, and asking again brings no other answer.
const mostLate = 2

// heedLate notes for the waiters of f that its answer, a grant, was over before they got it, if that is so. It reports
// whether to ask again for them. The caller holds Client.mu.
func (f *fetch) heedLate(answer driver.Grant) (again bool) {
	c := f.c.client()
	if !c.tooLate(answer, c.now()) || answer.Sent.IsZero() {
		return true
	}
	late := &lateError{f.r.Key, answer.Lease, time.Since(answer.Sent)}
	if f.only == nil {
		f.q.waiters.each(func(w *waiter) { w.broken = late })
		return true
	}
	w := f.only
	w.broken = late
	if w.late++; !f.r.Try || w.late < mostLate {
		return true
	}
	w.answer(late)
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
func (e *lateError) Unwrap() error { return &UnavailableError{Op: "lock", Name: e.key.Name} }

// askAgain asks once more for f's waiter, if it still waits by then. Each attempt has a goroutine of its own, because
// the one that failed may have run in the caller's.
func (f *fetch) askAgain(after time.Duration) {
	next := f.again()
	if next == nil {
		return
	}
	if after > 0 && !pause(next.ctx, after) { // the waiter has left, or Close has answered it
		next.cancel()
		return
	}
	f.c.client().lock()
	withdrawn := next.withdrawn
	next.idle = withdrawn
	f.c.client().unlock()
	if withdrawn { // it counts on nothing being sent
		next.cancel()
		return
	}
	next.run()
}

// again returns a fetch that asks for f's waiter once more, or nil if it has left. It has a new id: the old one may
// have been undone, and an undone id is refused.
func (f *fetch) again() *fetch {
	f.c.client().lock()
	defer f.c.client().unlock()
	// A candidate that withdraws waits for f.over: another request, of which it does not know, might name it as the
	// leader.
	if f.withdrawn || !f.detach() {
		return nil
	}
	next := f.c.client().newFetch(f.only, f.r.Try)
	next.only, next.idle, f.only.own = f.only, true, next
	if f.settling {
		next.undone = f.over
	}
	return next
}

// failed decides what an error means for the waiters, and has the request undone if its outcome is unknown. The
// caller holds Client.mu, which failed gives up.
func (f *fetch) failed(err error, wanted bool) {
	c, q := f.c.client(), f.q
	definite := driver.IsDefinite(err)
	told, again := false, false
	if wanted {
		told, again = f.sortOut(err, definite)
	}
	if q != nil {
		q.tidy()
	}
	// The engine may have granted the request or kept a place for it. Both would block others until they end by
	// themselves.
	if !definite {
		f.settle(true)
	}
	c.unlock()
	if !again {
		return
	}
	c.opts.Logger.Log(c.base, onceWarn(told), "interlock: asking again after an error while waiting",
		"lock", f.r.Name, "engine", c.traits.Engine, "err", err)
	if f.only != nil {
		c.spawn(func() { f.askAgain(retryPause) })
		return
	}
	c.spawn(q.fetchAgain)
}

// sortOut answers the waiters of f with err, or keeps them waiting. It reports whether to ask again for them, and
// whether that is so after an error already.
//
// A wait survives err if it had begun, that is if the waiter knows who is in the way, and if err is neither definite
// nor a refusal. Its place in the engine's queue may be lost. A waiter that the engine has never answered learns at
// once that the engine cannot be reached. A refusal ends every wait, because the engine would say the same again. The
// caller holds Client.mu.
func (f *fetch) sortOut(err error, definite bool) (told, again bool) {
	if f.withdrawn { // its waiter knows already what to say
		return false, false
	}
	survives := !definite && driver.Refusal(err) == nil
	f.idle = true
	sort := func(w *waiter) {
		if survives && w.hasBegun() {
			told = told || w.broken != nil
			w.broken, again = err, true
			w.doubt = w.doubt || leavesDoubt(err)
			return
		}
		w.answer(markOpen(explain(f.r.Key, err), w.doubt))
		if f.q != nil {
			f.q.remove(w)
		}
	}
	if f.only != nil {
		sort(f.only)
		return told, again
	}
	f.q.waiters.each(sort)
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
func explain(key driver.Key, err error) error {
	if driver.Refusal(err) != nil { // also one that the driver has wrapped
		return unavailable("lock", key, err)
	}
	if driver.IsDefinite(err) {
		return wrap("lock", key, err)
	}
	// A driver that repeated the request by itself got this answer to one copy; another may have been granted. So it
	// proves nothing and must not match ErrHeld.
	if errors.Is(err, ErrHeld) {
		err = errors.New(err.Error())
	}
	return unavailable("lock", key, err)
}

// retryPause is the pause between two requests of a wait that survives errors. It is short enough to use a server soon
// after it has come back, and long enough not to burden one that is coming back.
const retryPause = 100 * time.Millisecond

// fetchAgain waits for retryPause and asks on behalf of the line. It runs in a goroutine of its own; Close ends the
// pause.
func (q *queue) fetchAgain() {
	if !pause(q.c.client().base, retryPause) {
		return
	}
	q.c.client().lock()
	defer q.c.client().unlock()
	q.startFetch(nil)
}

// orphaned handles the engine's word that the hold beside which f asked is over. That hold is lost then, unless this
// process released it meanwhile: in that case its owner asks anew, on its own. The caller holds Client.mu, which
// orphaned gives up.
func (f *fetch) orphaned(err error, wanted bool) {
	c, g := f.c.client(), f.beside
	f.g.settle(true)
	if g.Phase != grants.Gone {
		reason := driver.LostExpired
		if told := (*LostError)(nil); errors.As(err, &told) {
			reason = told.Reason
		}
		c.loseAndRelease(g, reason)
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
