package interlock

import (
	"context"
)

// join puts w at the end of its queue's line and waits there. The caller holds Client.mu, which join gives up.
func (c *Client) join(ctx context.Context, w *waiter) (*Lease, error) {
	m, o := w.lease.m, w.lease.owner
	if c.closed {
		c.unlock()
		return nil, wrap("lock", m.key(), ErrClosed)
	}
	if c.overtaken(w) {
		c.unlock()
		return w.lease, nil
	}
	if c.takeOver(w.lease, w.start) {
		c.unlock()
		return w.lease, nil
	}
	q := c.queueFor(m)
	w.q, w.ready = q, make(chan struct{})
	w.announce = w.announcement(ctx)
	q.waiters.push(w)
	o.waits.Add(1)
	c.suspectDeadlock(o)
	switch g := c.passing(m); {
	case g != nil:
		w.blocker = g.holder()
		w.mustWait(nil)
	case q.waiters.first != w:
		w.mustWait(q.inTheWay())
	}
	f := q.prepareFetch(nil)
	if f == nil {
		c.unlock()
		return w.wait(ctx)
	}
	f.leader = w
	c.background.Add(1)
	c.unlock()
	return f.lead(ctx, w)
}

// overtaken gives w a hold on what its owner has by now, if another goroutine of that was quicker. The caller holds
// Client.mu.
func (c *Client) overtaken(w *waiter) bool {
	g := c.liveGrant(w.lease.owner, w.lease.m.key())
	if g == nil {
		return false
	}
	g.admit(w.lease, w.start, c.now(), true)
	return true
}

// askAlone asks the engine for w and nobody else: a try, or a named owner, whom the engine itself has to tell apart.
func (c *Client) askAlone(ctx context.Context, w *waiter, try bool) (*Lease, error) {
	c.lock()
	if c.closed {
		c.unlock()
		return nil, wrap("lock", w.lease.m.key(), ErrClosed)
	}
	// another goroutine of the same owner was quicker
	if w.mayReenter() && c.liveGrant(w.lease.owner, w.lease.m.key()) != nil {
		c.unlock()
		return nil, errAgain
	}
	return c.ask(ctx, w, try)
}

// joinAlone asks the engine for w alone, and waits there. The caller holds Client.mu, which joinAlone gives up.
func (c *Client) joinAlone(ctx context.Context, w *waiter) (*Lease, error) {
	switch {
	case c.closed:
		c.unlock()
		return nil, wrap("lock", w.lease.m.key(), ErrClosed)
	case c.overtaken(w):
		c.unlock()
		return w.lease, nil
	}
	return c.ask(ctx, w, false)
}

// ask is askAlone for who holds Client.mu, which ask gives up, and has seen that the client is open.
func (c *Client) ask(ctx context.Context, w *waiter, try bool) (*Lease, error) {
	// else nobody but w can wait as this owner, and each grant would look for others among all who wait
	shared := !w.fresh
	f := c.newFetch(w, try)
	f.only, w.own = w, f
	w.announce = w.announcement(ctx)
	c.alone[w] = struct{}{}
	c.background.Add(1)
	w.ready = make(chan struct{})
	if shared {
		w.lease.owner.waits.Add(1)
		defer w.lease.owner.waits.Add(-1)
	}
	if !try {
		c.suspectDeadlock(w.lease.owner)
	}
	c.unlock()
	return f.lead(ctx, w)
}

// inTheWay says to a try who of this process holds m, or is about to. The caller holds Client.mu.
func (c *Client) inTheWay(m *Mutex) *HeldError {
	if g := c.passing(m); g != nil && (g.holds.first != nil || g.keptUntil() < never) {
		return g.holder().heldError()
	}
	if q := c.queues[m.queueKey()]; q != nil && q.inTheWay() != nil {
		held := *q.inTheWay()
		return &held
	}
	return &HeldError{Kind: m.key().Kind, Name: m.key().Name, Client: c.opts.ClientName}
}

// tryBeside turns the refusal of a try into re-entry if another goroutine of the same owner was quicker.
func (m *Mutex) tryBeside(o *owner, at call, err error) (*Lease, error) {
	if o == nil {
		return nil, err
	}
	c := m.c
	c.lock()
	defer c.unlock()
	g := c.liveGrant(o, m.key())
	if g == nil {
		return nil, err
	}
	l := m.newLease(o)
	g.admit(l, at.start, c.now(), true)
	return l, nil
}
