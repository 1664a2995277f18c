package interlock

import (
	"context"
	"errors"
)

// waiter is one Lock or TryLock under way.
type waiter struct {
	lease *Lease // for whom and of what; a hold once the wait has ended well
	call
	q   *queue // in which it stands; nil if it does not
	own *fetch // the request that is for this waiter alone; nil if it stands in the line

	before, behind *waiter // in the line
	standing       bool    // in the line
	fresh          bool    // its owner's id has not been used for a request; guarded by Client.mu

	ready chan struct{} // closed when answered; nil if nobody waits for that

	announce func() // tells the Observer that w has to wait; nil when it has or nobody listens; guarded by Client.mu

	beside   *grant // what its owner has, beside which it asks; nil if it asks on its own
	converts *Lease // the hold that is to have what it asks for; nil if it gets one of its own
	// on what converts had and nobody holds now, which is to be given back; guarded by Client.mu
	left *pendingRelease

	blocker *Lease     // the hold of this process that was in the way when w came; nil if none; guarded by Client.mu
	told    *HeldError // who is in the way, as the engine last said; nil if it has not; guarded by Client.mu
	broken  error      // why the engine has not been heard since; guarded by Client.mu
	doubt   bool       // it is unknown what became of an attempt; guarded by Client.mu

	// Guarded by Client.mu; constant once ready is closed.
	answered bool
	err      error
}

// newWaiter returns an attempt for o, or for a new owner if o is nil.
func (m *Mutex) newWaiter(o *owner, at call) *waiter {
	return &waiter{lease: m.newLease(o), call: at, fresh: o == nil}
}

// answer ends the wait of w. The caller holds Client.mu.
func (w *waiter) answer(err error) {
	w.answered, w.err = true, err
	if w.own != nil {
		delete(w.lease.m.c.alone, w)
	}
	if w.ready != nil {
		close(w.ready)
	}
}

// grant ends the wait of w with a hold on g. The caller holds Client.mu.
func (w *waiter) grant(g *grant, local bool) {
	if w.converts != nil {
		w.left = w.converts.convertTo(g)
		w.answer(nil)
		return
	}
	g.admit(w.lease, w.start, w.lease.m.c.now(), local)
	w.answer(nil)
}

// said is what the caller of Lock or TryLock gets. It is for when w has been answered.
func (w *waiter) said() (*Lease, error) {
	if w.err != nil {
		return nil, w.err
	}
	return w.lease, nil
}

// wait waits until w is answered or ctx ends.
func (w *waiter) wait(ctx context.Context) (*Lease, error) {
	select {
	case <-w.ready:
		return w.said()
	case <-ctx.Done():
	}
	c := w.lease.m.c
	c.lock()
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

// decline gives back what w was granted in the instant in which its context ended: the caller no longer wants it, and
// does not wait for the engine's word on that. The caller holds Client.mu.
func (w *waiter) decline() {
	if w.converts == nil { // else who asked sees that it was granted
		w.lease.decline()
	}
}

// mustWait tells the Observer, once for each call, that it has to wait. The caller holds Client.mu.
func (w *waiter) mustWait(held *HeldError) {
	if held != nil {
		w.told, w.broken = held, nil
	}
	if w.announce != nil {
		w.lease.m.c.afterUnlock(w.announce)
		w.announce = nil
	}
}

// leave gives up the wait. The caller holds Client.mu.
func (w *waiter) leave() {
	if w.own != nil {
		delete(w.lease.m.c.alone, w)
		w.own.abandoned = true
		w.own.cancel()
		return
	}
	w.q.remove(w)
}

// timeout says why w did not get the lock before its context ended: because another has it, as far as anybody told us,
// or because the engine did not answer. The caller holds Client.mu.
func (w *waiter) timeout(cause error) error {
	f, m := w.own, w.lease.m
	if f == nil {
		if g := m.c.passing(m); g != nil && (g.holds.first != nil || g.keptUntil() < never) {
			held := g.holder().heldError()
			held.Cause = cause
			return held
		}
		f = w.q.fetch
	}
	var held HeldError
	switch {
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

// hasBegun reports whether it is known that another owner was in the way of w. The caller holds Client.mu.
func (w *waiter) hasBegun() bool { return w.told != nil || w.blocker != nil }
