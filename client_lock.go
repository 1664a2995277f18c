package interlock

// Client.mu, and the effects: what is done when it has been given up. Under it the state changes, at one instant, and
// nothing else happens: no engine, no goroutine, no user's code. Both may call back into the client.

// lock takes Client.mu, which guards the queues, grants, leases and the scheduler of the client. Nothing blocks under
// it. owner.mu is a leaf, which may be taken under it.
func (c *Client) lock() {
	c.mu.Lock()
	c.instant = 0
}

// unlock gives Client.mu up and then does the effects, in the caller's goroutine. It is for goroutines of the user.
func (c *Client) unlock() {
	todo := c.take()
	c.mu.Unlock()
	c.perform(todo)
	callEach(todo)
}

// unlockInside is unlock for the scheduler and for a driver's goroutines. A slow observer must not delay the renewals
// and losses of other holds, so the user's code gets a goroutine of its own.
func (c *Client) unlockInside() {
	todo := c.take()
	calls := false
	for i := range todo {
		calls = calls || todo[i].verb == callUser
	}
	if calls {
		if !c.closed {
			c.background.Go(func() { callEach(todo) })
		} else { // Close waits for no new goroutine
			defer callEach(todo)
		}
	}
	c.mu.Unlock()
	c.perform(todo)
}

// take empties the list of effects. The caller holds Client.mu.
func (c *Client) take() []effect {
	todo := c.effects
	c.effects = nil
	return todo
}

// callEach calls the user's code.
func callEach(todo []effect) {
	for i := range todo {
		if todo[i].verb == callUser {
			todo[i].call()
		}
	}
}

// perform does all else. Holders are told before the releases that follow them in todo: otherwise another owner could
// get in before. What blocks gets a goroutine of its own.
func (c *Client) perform(todo []effect) {
	for i := range todo {
		switch e := &todo[i]; e.verb {
		case cancelContexts:
			for _, w := range e.contexts {
				w.end(e.cause)
			}
		case callUser:
		default:
			go func() { // ends with the engine's word, or with Close
				defer c.background.Done()
				c.run(e)
			}()
		}
	}
}

// run does one effect that blocks.
func (c *Client) run(e *effect) {
	switch e.verb {
	case sendRelease:
		_, _ = c.settleNow(e.m, e.give)
		if e.done != nil {
			close(e.done)
		}
	case sendRequest:
		e.fetch.run()
	case sendRenewals:
		c.renewBatch(e.batch)
	case sendLastRenewal:
		c.renewToRunOut(e.batch, e.after)
	case renewForPass:
		e.grant.renewAndPass()
	case finishRelease:
		_ = e.left.await(c.hard, unlockGrace)
	case releaseAfter:
		c.releaseWhenDue(e.late, e.after)
	}
}
