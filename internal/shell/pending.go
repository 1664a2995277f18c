package shell

import (
	"time"

	"github.com/interlock-go/interlock/internal/core"
)

// awaitPending waits, in Close, until nothing is pending any more, or for most. The caller holds Machine.Mu, which is
// given up meanwhile: renewals go on, and over needs it.
func (c *Client) awaitPending(most time.Duration) {
	if c.Pending == 0 {
		return
	}
	quiet, limit := make(chan struct{}), time.NewTimer(most)
	defer limit.Stop()
	c.PendingDone = quiet
	c.Unlock()
	select {
	case <-quiet:
	case <-limit.C:
	}
	c.Lock()
}

// leavePending marks what is still pending, so that Close leaves it to run out. Where nothing runs out by itself,
// releaseLater keeps it for a lease. The caller holds Machine.Mu.
func (c *Client) leavePending() {
	if c.Pending == 0 {
		return
	}
	for _, g := range c.Machine.EngineHolds {
		for ; g != nil; g = g.After {
			if g.IsPending() {
				g.LeaveAtClose()
			}
		}
	}
}

// leftPending logs that. The caller holds Machine.Mu.
func (c *Client) leftPending(g *core.EngineHold) {
	c.Machine.AfterUnlock(func() {
		c.Config.Logger.Warn("interlock: closed while something was pending: lock left to run out",
			"lock", g.Lock.Key().Name, "engine", c.Machine.Traits.Engine, "token", g.Token)
	})
}
