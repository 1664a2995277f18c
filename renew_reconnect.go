package interlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// After a reconnection: the server may have been restarted, and have forgotten what it had granted. Without a question
// the holders would trust their leases until the next renewals, a third of a lease later, beside whoever got in since.

// heedReconnections has the driver tell of reconnections until the client is closed, if it can.
func (c *Client) heedReconnections() {
	if r, can := c.d.(driver.Reconnector); can && c.hasLeases() {
		context.AfterFunc(c.base, r.OnReconnect(c.renewHeld))
	}
}

// renewHeld sends a renewal for every live hold, in batches, and does not wait for the answers. Of those whose renewal
// is under way it sends none: that one asks the same.
func (c *Client) renewHeld() {
	c.lock()
	defer c.unlockInside()
	var batch []pendingRenewal
	send := func() {
		if len(batch) > 0 && !c.closed { // Close waits for no new goroutine
			c.emit(effect{verb: sendRenewals, batch: batch})
		}
		batch = nil
	}
	looked := 0
	for _, g := range c.grants {
		if looked++; looked%atOnce == 0 { // as bundle.yieldMutex does
			c.unlockInside()
			c.lock()
		}
		now := c.now()
		for ; g != nil; g = g.next {
			if g.mayHaveBeenForgotten(now) {
				batch = append(batch, g.renewal(now))
				c.reschedule(g)
			}
		}
		if len(batch) >= mostTogether {
			send()
		}
	}
	send()
}

// mayHaveBeenForgotten reports whether a renewal has to find out whether the engine still knows g. A lock that is
// retained is not asked for: nobody relies on it, and whoever takes it again asks first where there is doubt. The
// caller holds Client.mu.
func (g *grant) mayHaveBeenForgotten(now trust.Instant) bool {
	_, failed := g.m.c.failures[g]
	return g.Phase != grants.Gone && g.renewing() && g.retained() == nil && (failed || now >= g.NotBefore)
}
