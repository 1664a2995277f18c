package interlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// join puts w at the end of its queue's line and waits there.
func (c *Client) join(ctx context.Context, w *waiter) (*Lease, error) {
	c.lock()
	if c.closed {
		c.unlock()
		return nil, wrap("lock", w.m.key, ErrClosed)
	}
	if g := c.liveGrant(w.owner, w.m.key); g != nil { // another goroutine of the same owner was quicker
		lease := g.admit(w.owner, w.m, time.Since(w.since), true)
		c.unlock()
		return lease, nil
	}
	q := c.queueFor(w.m)
	w.q = q
	w.announce = c.announcement(ctx, w)
	q.waiters.push(w)
	w.owner.noteWait(w)
	if q.grant != nil || q.waiters.length > 1 {
		var held *HeldError
		if q.grant != nil {
			held = q.grant.heldError()
		} else if q.fetch != nil {
			held = q.fetch.held
		}
		w.mustWait(held)
	}
	f := q.prepareFetch(nil)
	if f != nil {
		c.background.Add(1)
	}
	c.unlock()
	if f != nil {
		f.start(ctx, w)
	}
	return w.wait(ctx)
}

// askAlone asks the engine for w and nobody else: a try, or a named owner, whom the engine itself has to tell apart. With a
// local engine a try is made in the caller's goroutine.
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
	c.unlock()
	if try && c.traits.Local {
		f.run()
		c.background.Done()
	} else {
		f.start(ctx, w)
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

// liveGrant returns what o has of key by now, or nil. The caller holds Client.mu.
func (c *Client) liveGrant(o *owner, key driver.Key) *grant {
	if o.named {
		return nil
	}
	for _, l := range o.snapshot() {
		if l.c != c || l.key != key || l.ended != nil {
			continue
		}
		if c.expire(l.g, c.now()); l.ended == nil {
			return l.g
		}
	}
	return nil
}

// tryBeside turns the refusal of a try into re-entry if another goroutine of the same owner was quicker.
func (c *Client) tryBeside(w *waiter, err error) (*Lease, error) {
	c.lock()
	defer c.unlock()
	if g := c.liveGrant(w.owner, w.m.key); g != nil {
		return g.admit(w.owner, w.m, time.Since(w.since), true), nil
	}
	return nil, err
}
