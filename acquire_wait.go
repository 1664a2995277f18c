package interlock

import (
	"context"
	"errors"
	"github.com/interlock-go/interlock/internal/trust"
)

// A waiter is the caller's side of a Lock that is not answered at once. It blocks in wait until a grant or an error
// comes, or its context ends. acquire_queue.go and acquire_fetch.go answer it; acquire_retry.go decides which errors it
// survives.

// waiter is one Lock or TryLock under way. It belongs to the goroutine of its caller; other goroutines answer it under
// Client.mu and wake it by closing ready.
type waiter struct {
	lease *Lease // the owner and the lock; it becomes a hold when the wait succeeds
	call
	q   *queue // in whose line it stands; nil if it stands in none
	own *fetch // the request on behalf of this waiter alone; nil if it stands in a line

	before, behind *waiter // neighbours in the line; see waiterList
	standing       bool    // it is in the line
	fresh          bool    // no request has used its owner's id yet; guarded by Client.mu

	ready chan struct{} // closed by answer; nil for a waiter on which nobody blocks

	announce func() // tells the Observer that w waits; nil once called or if nobody listens; guarded by Client.mu

	beside   *grant // the grant of its owner beside which it asks; nil if it asks on its own
	converts *Lease // the hold that a conversion moves to the new grant; nil for a call that gets a hold of its own
	// what converts held before, if nobody holds it any more; giveLeft releases it; guarded by Client.mu
	left *pendingRelease

	blocker *Lease     // the hold of this process that was in the way when w came; nil if none; guarded by Client.mu
	told    *HeldError // who holds the lock, by the engine's last word; nil until it says so; guarded by Client.mu
	broken  error      // why the engine has been silent since then; guarded by Client.mu
	doubt   bool       // the outcome of an earlier attempt is unknown; guarded by Client.mu

	// Guarded by Client.mu; constant once ready is closed, so that said reads them without it.
	answered bool
	err      error
}

// newWaiter returns an attempt for o, or for a new owner if o is nil.
func (m *lock) newWaiter(o *owner, at call) *waiter {
	return &waiter{lease: m.newLease(o), call: at, fresh: o == nil}
}

// answer ends the wait of w with a success (nil) or err. It is called once. The caller holds Client.mu, and takes a
// waiter in a line out of it.
func (w *waiter) answer(err error) {
	w.answered, w.err = true, err
	if w.own != nil {
		delete(w.lease.m.c.alone, w)
	}
	if w.ready != nil {
		close(w.ready)
	}
}

// grant ends the wait of w with a hold on g. local says that g passed on inside the process. The caller holds
// Client.mu.
func (w *waiter) grant(g *grant, local bool) {
	if w.converts != nil {
		w.left = w.converts.convertTo(g)
		w.answer(nil)
		return
	}
	g.admit(w.lease, w.start, w.lease.m.c.now(), local)
	w.answer(nil)
}

// result returns what the caller of Lock or TryLock gets. It must not be called before w has been answered.
func (w *waiter) result() (*Lease, error) {
	if w.err != nil {
		return nil, w.err
	}
	return w.lease, nil
}

// wait blocks until w is answered or ctx ends. If ctx ends in the instant of the grant, the caller may get either. If
// it gets the context's error, the grant is given back.
func (w *waiter) wait(ctx context.Context) (*Lease, error) {
	select {
	// Answered by a grant, an error, Close, or a deadlock search.
	case <-w.ready:
		return w.result()
	// The caller gives up. Whether it was answered meanwhile is only known under Client.mu.
	case <-ctx.Done():
	}
	c := w.lease.m.client()
	c.lock()
	// The error is made first: leave may end the fetch, which is what timeout looks at.
	if !w.answered {
		defer c.unlock()
		err := w.timeout(ctx.Err())
		w.leave()
		return nil, err
	}
	defer c.unlock()
	if w.err != nil {
		return nil, w.err
	}
	w.decline()
	return nil, wrap("lock", w.lease.m.key(), ctx.Err())
}

// decline gives back what w was granted in the instant in which its context ended. The caller of Lock does not wait for
// the engine to confirm that. The caller holds Client.mu.
func (w *waiter) decline() {
	if w.converts == nil { // else the grant stays: Upgrade and Downgrade see it and succeed
		w.lease.decline()
	}
}

// mustWait records who is in the way of w, and tells the Observer once for each call that it waits. held is nil if a
// hold of this process is in the way. The caller holds Client.mu.
func (w *waiter) mustWait(held *HeldError) {
	if held != nil {
		w.told, w.broken = held, nil
	}
	if w.announce != nil {
		w.lease.m.c.afterUnlock(w.announce)
		w.announce = nil
	}
}

// leave takes w out of its line, or cancels the request that is for w alone. The fetch undoes by itself whatever that
// request has left in the engine. The caller holds Client.mu.
func (w *waiter) leave() {
	if w.own != nil {
		delete(w.lease.m.c.alone, w)
		w.own.abandoned = true
		w.own.cancel()
		return
	}
	w.q.remove(w)
}

// timeout returns the error of a wait whose context has ended. It is a *HeldError if another owner is known to be in
// the way. It is an *UnavailableError if the engine has not said so, or has gone silent since. The newest knowledge
// wins: a holder in this process, then the engine's answer to the request under way, then its earlier ones. The caller
// holds Client.mu.
func (w *waiter) timeout(cause error) error {
	f, m := w.own, w.lease.m
	if f == nil {
		if g := m.client().passing(m); g != nil && (g.holds.first != nil || g.keptUntil() < trust.Never) {
			held := g.holder().heldError()
			held.Cause = cause
			return held
		}
		f = w.q.fetch
	}
	var held HeldError
	switch {
	// The engine has not answered, so "held" would be a guess. A request under way may have been carried out, which
	// leaves doubt.
	case w.broken != nil || !w.hasBegun() && (f == nil || f.held == nil):
		underWay := f != nil && !f.idle
		return doubtful("lock", m.key(), errors.Join(cause, w.broken), w.doubt || underWay)
	case f != nil && f.held != nil:
		held = *f.held
	case w.told != nil:
		held = *w.told
	default:
		held = *w.blocker.heldError()
	}
	held.Cause = cause
	return &held
}

// hasBegun reports whether another owner is known to be in the way of w. From then on the wait survives broken
// connections; before, the first error ends it. The caller holds Client.mu.
func (w *waiter) hasBegun() bool { return w.told != nil || w.blocker != nil }
