package interlock

import (
	"context"

	"github.com/interlock-go/interlock/internal/trust"
)

// A call that cannot be answered inside the process either joins the line of its lock (join) or asks the engine for
// itself alone (askAlone, waitAlone). acquire.go decides which. The line is in core_line.go, the request in
// acquire_fetch.go, and the wait of the caller in acquire_wait.go.

// join puts w at the end of its queue's line and waits there. The caller holds Client.mu, which join gives up.
//
// Both shortcuts before the line, overtaken and takeOver, must be looked at under the same Client.mu as the push.
// Otherwise a grant could come free between the look and the push, and w would ask the engine for a lock that its own
// process keeps.
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
	// A deadlock search that runs from here on counts w as a wait of o, so this precedes suspectDeadlock.
	o.waits.Add(1)
	c.suspectDeadlock(o)
	// What is in the way is known without the engine if a goroutine of this process holds the lock, or if the line has
	// asked already. The Observer is told at once then.
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
	// Nobody asks for this line yet, so w does, in its own goroutine. The fetch still belongs to the line: see
	// fetch.lead.
	f.leader = w
	// Counted under Client.mu, so that Close waits for the request.
	c.background.Add(1)
	c.unlock()
	return f.lead(ctx, w)
}

// askAlone asks the engine on behalf of w alone, past the queue of this client. It serves tries, which must not wait in
// a line, and named owners, which only the engine can tell apart across processes. For a read/write lock it returns
// errAgain if the owner has got a hold since w was made: then the caller asks beside that hold.
func (c *Client) askAlone(ctx context.Context, w *waiter, try bool) (*Lease, error) {
	c.lock()
	if c.closed {
		c.unlock()
		return nil, wrap("lock", w.lease.m.key(), ErrClosed)
	}
	// Another goroutine of the same owner was quicker. The engine does not know that the two are one owner, so w would
	// wait behind it.
	if w.mayReenter() && c.liveGrant(w.lease.owner, w.lease.m.key()) != nil {
		c.unlock()
		return nil, errAgain
	}
	return c.ask(ctx, w, try)
}

// waitAlone is askAlone for a call that waits: a named owner, or a candidate of an election. The caller holds
// Client.mu, which waitAlone gives up.
func (c *Client) waitAlone(ctx context.Context, w *waiter) (*Lease, error) {
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

// ask makes the request of askAlone and waitAlone and waits for its answer. The caller holds Client.mu, which ask gives
// up, and has seen that the client is open.
func (c *Client) ask(ctx context.Context, w *waiter, try bool) (*Lease, error) {
	// An owner that was made for this call is known to no other goroutine. Its waits need no count, because nobody else
	// can wait as this owner. And with a count each grant would search all waiters for others of it.
	shared := !w.fresh
	f := c.newFetch(w, try)
	f.only, w.own = w, f
	w.announce = w.announcement(ctx)
	// From here on Close, a deadlock search and a grant to the same owner find w, although it stands in no line.
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

// inTheWay describes to a try who of this process holds m, or is about to hold it. It names the holder here, or else
// whoever the engine has named to the line; if neither is known, only the client. The caller holds Client.mu.
func (c *Client) inTheWay(m *lock) *HeldError {
	if g := c.passing(m); g != nil && (g.holds.first != nil || g.keptUntil() < trust.Never) {
		return g.holder().heldError()
	}
	if q := c.queues[m.queueKey()]; q != nil && q.inTheWay() != nil {
		held := *q.inTheWay()
		return &held
	}
	return &HeldError{Kind: m.key().Kind, Name: m.key().Name, Client: c.opts.ClientName}
}

// tryBeside turns the refusal of a try into re-entry if another goroutine of the same owner was quicker. Otherwise a
// try could be refused because of its own owner. It returns err unchanged if o has no live grant.
func (m *lock) tryBeside(o *owner, at call, err error) (*Lease, error) {
	if o == nil {
		return nil, err
	}
	c := m.client()
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
