package interlock

import "github.com/interlock-go/interlock/internal/trust"

// Client.mu, and what is put off until it has been given up.

// lock takes Client.mu, which guards the queues, grants, leases and the scheduler of the client. Nothing blocks under
// it, and neither the driver nor the user's code is called under it: both may call back into the client. owner.mu is a
// leaf, which may be taken under it.
func (c *Client) lock() { c.mu.Lock() }

// deferredCalls is what is put off until Client.mu has been given up. Guarded by Client.mu.
type deferredCalls struct {
	cancels   []func() // of contexts, and releases behind them; they come first, because holders must stop
	callbacks []func() // observers and loggers, which may be slow although they must not be
}

// cancelAfterUnlock has contexts cancelled with cause as soon as Client.mu has been given up: a cancellation runs the
// user's functions (context.AfterFunc). The caller holds Client.mu.
func (c *Client) cancelAfterUnlock(contexts []*leaseContext, cause error) {
	c.deferred.cancels = append(c.deferred.cancels, func() {
		for _, w := range contexts {
			w.cancel(cause)
		}
	})
}

// afterUnlock has f, which calls the user's code, called as soon as Client.mu has been given up. The caller holds
// Client.mu.
func (c *Client) afterUnlock(f func()) { c.deferred.callbacks = append(c.deferred.callbacks, f) }

// unlock gives Client.mu up and then does what was put off, in the caller's goroutine. It is for goroutines of the
// user.
func (c *Client) unlock() {
	todo := c.take()
	c.mu.Unlock()
	run(todo.cancels)
	run(todo.callbacks)
}

// unlockInside is unlock for the scheduler and for a driver's goroutines. A slow observer must not delay the renewals
// and losses of other holds, so callbacks get a goroutine of their own.
func (c *Client) unlockInside() {
	todo := c.take()
	if len(todo.callbacks) > 0 {
		if !c.closed {
			c.background.Go(func() { run(todo.callbacks) })
		} else { // Close waits for no new goroutine
			defer run(todo.callbacks)
		}
	}
	c.mu.Unlock()
	run(todo.cancels)
}

// take empties the list of what was put off. The caller holds Client.mu.
func (c *Client) take() deferredCalls {
	todo := c.deferred
	c.deferred = deferredCalls{}
	return todo
}

func run(todo []func()) {
	for _, f := range todo {
		f()
	}
}

// now returns the present instant, and notices if the machine was suspended. The caller holds Client.mu.
func (c *Client) now() trust.Instant {
	now := c.reading()
	if c.watching {
		c.env.Suspensions.Look(now)
	}
	return now
}
