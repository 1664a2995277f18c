package interlock

// lock takes Client.mu, which guards queues, grants, leases and the scheduler of the client. Under it nothing blocks,
// and neither the driver's requests nor anything of the user is called.
func (c *Client) lock() { c.mu.Lock() }

// deferredCalls is what is put off until Client.mu has been given up.
type deferredCalls struct {
	cancels   []func() // of contexts; they come first, because holders are to stop
	callbacks []func() // observers and loggers, which may be slow although they must not
}

// cancelAfterUnlock has contexts cancelled as soon as Client.mu has been given up. The caller holds Client.mu.
func (c *Client) cancelAfterUnlock(contexts []*leaseContext, cause error) {
	c.deferred.cancels = append(c.deferred.cancels, func() {
		for _, w := range contexts {
			w.cancel(cause)
		}
	})
}

// afterUnlock has f, which is not ours, called as soon as Client.mu has been given up. The caller holds Client.mu.
func (c *Client) afterUnlock(f func()) { c.deferred.callbacks = append(c.deferred.callbacks, f) }

// unlock gives Client.mu up and then does what was put off. It is for goroutines of the user.
func (c *Client) unlock() {
	todo := c.take()
	c.mu.Unlock()
	run(todo.cancels)
	run(todo.callbacks)
}

// unlockInside is unlock for the scheduler and for a driver's goroutines: a slow observer must not hold up the renewals
// and losses of others, so it gets a goroutine of its own.
func (c *Client) unlockInside() {
	todo := c.take()
	if len(todo.callbacks) > 0 {
		if !c.closed {
			c.background.Go(func() { run(todo.callbacks) })
		} else { // Close waits for nobody new
			defer run(todo.callbacks)
		}
	}
	c.mu.Unlock()
	run(todo.cancels)
}

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

// now reads the monotonic clock, and notices if the machine was asleep. The caller holds Client.mu.
func (c *Client) now() instant {
	now := c.reading()
	if c.watching {
		c.suspensions.look(now)
	}
	return now
}
