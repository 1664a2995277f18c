package shell

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// After a reconnection: the server may have been restarted, and have forgotten what it had granted. Without a question
// the holders would trust their leases until the next renewals, a third of a lease later, beside whoever got in since.

// heedReconnections has the driver tell of reconnections until the client is closed, if it can.
func (c *Client) heedReconnections() {
	if r, can := c.Driver.(driver.Reconnector); can && c.Machine.HasLeases() {
		context.AfterFunc(c.renewCtx, r.OnReconnect(c.renewHeld))
	}
}

// renewHeld sends a renewal for every live hold, in batches, and does not wait for the answers. Of those whose renewal
// is under way it sends none: that one asks the same.
func (c *Client) renewHeld() {
	c.Lock()
	defer c.unlockInside()
	var batch []core.PendingRenewal
	send := func() {
		if len(batch) > 0 && !c.Machine.Closed { // Close waits for no new goroutine
			c.Machine.Emit(core.Effect{Verb: core.SendRenewals, Batch: batch})
		}
		batch = nil
	}
	looked := 0
	for _, g := range c.Machine.EngineHolds {
		if looked++; looked%core.AtOnce == 0 { // as bundle.yieldMutex does
			c.unlockInside()
			c.Lock()
		}
		now := c.Machine.Now()
		for ; g != nil; g = g.After {
			if mayHaveBeenForgotten(g, now) {
				batch = append(batch, g.Renewal(now))
				c.Machine.Reschedule(g)
			}
		}
		if len(batch) >= core.MostTogether {
			send()
		}
	}
	send()
}

// mayHaveBeenForgotten reports whether a renewal has to find out whether the engine still knows g. A lock that is
// retained is not asked for: nobody relies on it, and whoever takes it again asks first where there is doubt. The
// caller holds Machine.Mu.
func mayHaveBeenForgotten(g *core.EngineHold, now trust.Instant) bool {
	_, failed := g.Lock.Core.Failures[g]
	return g.Phase != grants.Gone && g.Renewing() && g.Retained() == nil && (failed || now >= g.NotBefore)
}
