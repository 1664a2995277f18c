package interlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// join puts w at the end of its queue's line and waits there.
func (c *Client) join(ctx context.Context, w *waiter) (*Lease, error) {
	c.lock()
	if c.closed {
		c.unlock()
		return nil, wrap("lock", w.m.key, ErrClosed)
	}
	q := c.queueFor(w.m)
	w.q = q
	w.announce = c.announcement(ctx, w)
	q.waiters = append(q.waiters, w)
	if q.grant != nil || len(q.waiters) > 1 {
		w.mustWait()
	}
	q.startFetch(nil)
	c.unlock()
	return w.wait(ctx)
}

// askAlone asks the engine for w and nobody else: a try, or a named owner, whom the engine itself has to tell apart. With a
// local engine a try is made in the caller's goroutine; otherwise it runs beside the caller, so that a hung engine does
// not hold the caller up.
func (c *Client) askAlone(ctx context.Context, w *waiter, try bool) (*Lease, error) {
	c.lock()
	if c.closed {
		c.unlock()
		return nil, wrap("lock", w.m.key, ErrClosed)
	}
	f := newFetch(&queue{c: c, key: queueKey{Key: w.m.key}}, w)
	f.only, w.own = w, f
	f.r.Try = try
	w.announce = c.announcement(ctx, w)
	c.alone[w] = struct{}{}
	c.background.Add(1)
	run := func() {
		defer c.background.Done()
		f.run()
	}
	c.unlock()
	if try && c.traits.Local {
		run()
	} else {
		go run()
	}
	lease, err := w.wait(ctx)
	c.lock()
	delete(c.alone, w)
	c.unlock()
	return lease, err
}

// announcement returns what tells the Observer that w has to wait.
func (c *Client) announcement(ctx context.Context, w *waiter) func() {
	if c.opts.Observer.Waiting == nil {
		return nil
	}
	return func() { c.opts.Observer.waiting(ctx, w.m.event(w.owner)) }
}

// findQueue returns the queue of this process for m, or nil. The caller holds Client.mu.
func (c *Client) findQueue(m *Mutex) *queue {
	for _, q := range c.queues[m.key] {
		if q.key.lease == m.p.lease && q.key.noRenew == m.p.noRenew {
			return q
		}
	}
	return nil
}

// inTheWay says to a try who of this process holds, or is about to. The caller holds Client.mu.
func (q *queue) inTheWay() *HeldError {
	if q.grant != nil && len(q.grant.holds) > 0 {
		return q.grant.heldError()
	}
	if q.fetch != nil && q.fetch.held != nil {
		held := *q.fetch.held
		return &held
	}
	return &HeldError{Kind: q.key.Kind, Name: q.key.Name, Client: q.c.opts.ClientName}
}

// unsupported is the error for what the engine lacks, with its reason.
func unsupported(t driver.Traits, reason string) error {
	return &unsupportedError{engine: t.Engine, reason: reason}
}

type unsupportedError struct{ engine, reason string }

// Error gives the engine and its reason.
func (e *unsupportedError) Error() string {
	return ErrUnsupported.Error() + " (" + e.engine + ": " + e.reason + ")"
}

// Is matches ErrUnsupported.
func (e *unsupportedError) Is(t error) bool { return t == ErrUnsupported }
