package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// waiter is one Lock or TryLock under way.
type waiter struct {
	owner *owner
	m     *Mutex
	since time.Time
	q     *queue // in which it stands, or whose grant it will share
	own   *fetch // the request that is for this waiter alone; nil if it stands in the line

	before, behind *waiter // in the line
	standing       bool    // in the line

	ready chan struct{} // closed when answered

	announce func() // tells the Observer that w has to wait; nil when it has or nobody listens; guarded by Client.mu

	told   *HeldError // who is in the way, as last heard; nil if nobody has said so yet; guarded by Client.mu
	broken error      // why the engine has not been heard since; guarded by Client.mu

	// Guarded by Client.mu; constant once ready is closed.
	answered bool
	lease    *Lease
	err      error
}

// answer ends the wait of w. The caller holds Client.mu.
func (w *waiter) answer(l *Lease, err error) {
	w.answered, w.lease, w.err = true, l, err
	close(w.ready)
}

// grant ends the wait of w with a hold on g. The caller holds Client.mu.
func (w *waiter) grant(g *grant, local bool) {
	w.answer(g.admit(w.owner, w.m, time.Since(w.since), local), nil)
}

// wait waits until w is answered or ctx ends.
func (w *waiter) wait(ctx context.Context) (*Lease, error) {
	select {
	case <-w.ready:
		return w.lease, w.err
	case <-ctx.Done():
	}
	c := w.m.c
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
	return nil, wrap("lock", w.m.key, ctx.Err())
}

// decline gives back what w was granted in the instant in which its context ended: the caller no longer wants it, and does
// not wait for the engine's word on that. The caller holds Client.mu.
func (w *waiter) decline() {
	w.owner.remove(w.lease)
	if w.lease.ended != nil {
		return
	}
	if word := w.lease.giveUp(); word != nil {
		go func() { _ = word(w.m.c.hard) }() // counted as background by giveUp
	}
}

// mustWait tells the Observer, once, that w has to wait. The caller holds Client.mu.
func (w *waiter) mustWait(held *HeldError) {
	if held != nil {
		w.told, w.broken = held, nil
	}
	if w.announce != nil {
		w.m.c.after(w.announce)
		w.announce = nil
	}
}

// leave gives up the wait. The caller holds Client.mu.
func (w *waiter) leave() {
	if w.own != nil {
		w.own.abandoned = true
		w.own.cancel()
		return
	}
	w.q.remove(w)
}

// timeout says why w did not get the lock before its context ended: because another has it, as far as anybody told us, or
// because the engine did not answer. The caller holds Client.mu.
func (w *waiter) timeout(cause error) error {
	f := w.own
	if f == nil {
		if g := w.q.grant; g != nil && len(g.holds) > 0 {
			held := g.heldError()
			held.Cause = cause
			return held
		}
		f = w.q.fetch
	}
	inTheWay := w.told
	if f != nil && f.held != nil {
		inTheWay = f.held
	}
	if inTheWay == nil || w.broken != nil {
		return unavailable("lock", w.m.key, errors.Join(cause, w.broken))
	}
	held := *inTheWay
	held.Cause = cause
	return &held
}

// heldError describes the owner that has g now, to others of this process. The caller holds Client.mu.
func (g *grant) heldError() *HeldError {
	held := &HeldError{
		Kind: g.key.Kind, Name: g.key.Name,
		Owner: g.owner.id, Client: g.c.opts.ClientName, Token: g.token + uint64(g.pass),
	}
	if len(g.holds) > 0 {
		held.Since = g.holds[0].since.Round(0) // the wall clock's part only: it is for people
	}
	if end := g.deadline(); !end.IsZero() {
		held.Until = end.Round(0)
	}
	return held
}

// request describes to the engine what w wants.
func (w *waiter) request(id string) *driver.Request {
	c, m := w.m.c, w.m
	r := &driver.Request{
		Key: m.key, ID: id, Owner: w.owner.id, Named: w.owner.named,
		Client: c.opts.ClientName, Label: m.p.label,
		Mode: driver.Exclusive, Limit: 1, Weight: 1, Lease: m.p.lease, Tokens: 1,
	}
	if !w.owner.named && !m.p.noRenew && c.opts.LocalPasses > 0 {
		r.Tokens = c.opts.LocalPasses + 1
	}
	return r
}
