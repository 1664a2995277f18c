package shell

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// renewToRunOut sends the last renewal of a lock that is left to run out, until it is answered or the trust is over,
// which was left away when it was prepared. Close waits for it: only c.hard ends it early. Nobody holds the lock any
// more, so the answer changes nothing here.
func (c *Client) renewToRunOut(one []core.PendingRenewal, left time.Duration) {
	ctx, cancel := context.WithTimeout(c.releaseCtx, left)
	defer cancel()
	for wait := settleFirst; ; wait *= 2 {
		var err error
		c.renewer.Renew(ctx, []driver.Renewal{one[0].Renewal}, func(_ int, answer error) { err = answer })
		if err == nil {
			return
		}
		if errors.Is(err, driver.ErrLost) || !Pause(ctx, wait) {
			c.Config.Logger.Warn("interlock: lock left to run out was not renewed; it may be free before a lease is over",
				"lock", one[0].Renewal.Name, "engine", c.Machine.Traits.Engine, "err", err)
			return
		}
	}
}

// releaseWhenDue releases own after that time, unless Close has taken it over. It ends soon after, or with Close.
func (c *Client) releaseWhenDue(own *core.LateRelease, after time.Duration) {
	Pause(c.renewCtx, after)
	if c.takeRunOut(own) {
		_, _ = c.SettleNow(own.Lock, own.Release)
	}
}

// takeRunOut takes own over, to release it. It reports false if Close has done so: exactly one of the two releases it.
func (c *Client) takeRunOut(own *core.LateRelease) bool {
	c.Lock()
	defer c.Unlock()
	_, mine := c.Machine.LeftToExpire[own]
	delete(c.Machine.LeftToExpire, own)
	return mine
}

// takeAllRunOuts is takeRunOut for Close: it returns all that is left to run out, held or not, and ends the holds. On
// engines with leases it returns nothing, because leases end by themselves. The caller holds Machine.Mu.
func (c *Client) takeAllRunOuts() (all []core.LateRelease) {
	left := c.Machine.LeftToExpire
	c.Machine.LeftToExpire = nil
	if c.Machine.HasLeases() {
		return nil
	}
	for own := range left {
		all = append(all, *own)
	}
	for _, g := range c.Machine.EngineHolds {
		for g != nil {
			next := g.After
			if g.Phase == grants.Abandoned {
				at := c.Machine.Now().Plus(g.ExpiryDelay())
				all = append(all, core.LateRelease{Lock: g.Lock, Release: g.ReleaseRequest(), At: at})
				c.dropGrant(g)
			}
			g = next
		}
	}
	return all
}
