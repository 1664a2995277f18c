package shell

import "github.com/interlock-go/interlock/internal/core"

// Machine.Mu, and the effects: what is done when it has been given up. Under it the state changes, at one instant, and
// nothing else happens: no engine, no goroutine, no user's code. Both may call back into the client.

// Lock takes Machine.Mu, which guards the queues, grants, leases and the scheduler of the client. Nothing blocks under
// it. Owner.Mu is a leaf, which may be taken under it.
func (c *Client) Lock() {
	c.Mu.Lock()
	c.Instant = 0
}

// Unlock gives Machine.Mu up and then does the effects, in the caller's goroutine. It is for goroutines of the user.
func (c *Client) Unlock() {
	todo := c.take()
	c.Mu.Unlock()
	c.perform(todo)
	callEach(todo)
}

// unlockInside is unlock for the scheduler and for a driver's goroutines. A slow observer must not delay the renewals
// and losses of other holds, so the user's code gets a goroutine of its own.
func (c *Client) unlockInside() {
	todo := c.take()
	calls := false
	for i := range todo {
		calls = calls || todo[i].Verb == core.CallUser
	}
	if calls {
		if !c.Closed {
			c.Background.Go(func() { callEach(todo) })
		} else { // Close waits for no new goroutine
			defer callEach(todo)
		}
	}
	c.Mu.Unlock()
	c.perform(todo)
}

// take empties the list of effects. The caller holds Machine.Mu.
func (c *Client) take() []core.Effect {
	todo := c.Effects
	c.Effects = nil
	return todo
}

// callEach calls the user's code.
func callEach(todo []core.Effect) {
	for i := range todo {
		if todo[i].Verb == core.CallUser {
			todo[i].Call()
		}
	}
}

// perform does all else. Holders are told before the releases that follow them in todo: otherwise another owner could
// get in before. What blocks gets a goroutine of its own.
func (c *Client) perform(todo []core.Effect) {
	for i := range todo {
		switch e := &todo[i]; e.Verb {
		case core.CancelContexts:
			for _, w := range e.Contexts {
				w.End(e.Cause)
			}
		case core.CallUser:
		default:
			go func() { // ends with the engine's word, or with Close
				defer c.Background.Done()
				c.work.run(e)
			}()
		}
	}
}
