package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/internal/trust"
)

// A waiter is the caller's side of a Lock that is not answered at once. It blocks in wait until a grant or an error
// comes, or its context ends. core_line.go and acquire_fetch.go answer it; acquire_retry.go decides which errors it
// survives.

// newWaiter returns an attempt for o, or for a new owner if o is nil.
func (m *lock) newWaiter(o *owner, at call) *waiter {
	return &waiter{lease: m.newLease(o), call: at, fresh: o == nil}
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
	if w.lease.m.p.single {
		return w.withdraw(ctx.Err())
	}
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

// withdrawGrace is how long a candidate whose context has ended waits until the engine has forgotten it: as long as
// Unlock waits in that case.
const withdrawGrace = unlockGrace

// withdraw ends the wait of a candidate whose context has ended, and returns when nothing is left in the engine that
// could be granted: whoever has given up must not be named as the leader. If the engine was quicker, the caller leads,
// and others may have seen that. The caller holds Client.mu, which withdraw gives up.
func (w *waiter) withdraw(cause error) (*Lease, error) {
	c, f := w.lease.m.client(), w.own
	if w.answered {
		defer c.unlock()
		return w.result()
	}
	err := w.timeout(cause) // made first: see wait
	left := []chan struct{}{f.undone}
	if !f.idle || f.settling { // else nothing of f was sent, or is left
		left = append(left, f.over)
	}
	f.withdrawn = true
	f.cancel()
	c.unlock()
	awaitAll(left, withdrawGrace)
	c.lock()
	defer c.unlock()
	switch {
	case !w.answered:
		w.leave()
	case w.err == nil:
		return w.lease, nil
	}
	return nil, err
}

// awaitAll blocks until all are closed, or for most: the engine is silent then, and the rest goes on in the background.
// A nil one counts as closed.
func awaitAll(all []chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, one := range all {
		if one == nil {
			continue
		}
		select {
		case <-one:
		case <-timer.C:
			return
		}
	}
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
