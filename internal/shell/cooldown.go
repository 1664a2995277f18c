package shell

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// Locks that nobody holds and nobody gets yet: MinHold after an early release, LockDelay after a loss. release.go and
// internal/core/end.go come here when a hold ends; docs/adr/0022 has the decision.

// keepsForCooldown reports whether this process keeps the hold of key with that token for a cooldown, with no owner.
// The engine shows it as held, so an election would show a leader that has resigned.
func (c *Client) KeepsForCooldown(key driver.Key, token uint64) bool {
	c.Lock()
	defer c.Unlock()
	g := c.Machine.EngineHoldOf(key, token)
	return g != nil && g.Holds.First == nil && g.CooldownEnd() < trust.Never
}

// has reports whether this client has the hold of key with that token, held or kept for a cooldown.
func (c *Client) Has(key driver.Key, token uint64) bool {
	c.Lock()
	defer c.Unlock()
	return c.Machine.EngineHoldOf(key, token) != nil
}

// takeLater ends, for Close, every hold that this process must keep for a cooldown or leave to run out. It returns what
// must be released when that time is over, the earliest first. The caller holds Machine.Mu.
func (c *Client) takeLater() []core.LateRelease {
	all := c.takeAllRunOuts()
	for g, r := range c.Machine.Cooldowns {
		if c.Machine.HasLeases() || g.Cooldown() == 0 {
			continue
		}
		all = append(all, core.LateRelease{Lock: g.Lock, Release: g.ReleaseRequest(), At: r.Until})
		c.dropGrant(g)
	}
	slices.SortFunc(all, func(a, b core.LateRelease) int { return cmp.Compare(a.At, b.At) })
	return all
}

// releaseLater releases what Close could not yet release, and then closes the driver if Open opened it. It is the one
// goroutine that outlives Close, so there is no caller left to return an error to. A release that is not confirmed
// within twice the client's lease is given up: the end of the session or process frees the lock.
func (c *Client) releaseLater(all []core.LateRelease) {
	ctx := context.Background() //nolint:forbidigo // the client's have ended
	for _, next := range all {
		Pause(ctx, next.At.Since(c.Reading()))
		c.releaseLate(ctx, next.Release)
	}
	if !c.Owned {
		return
	}
	if err := c.Driver.Close(); err != nil {
		c.Config.Logger.Warn("interlock: close after what outlived Close", "engine", c.Machine.Traits.Engine, "err", err)
	}
}

// releaseLate is settleNow after Close: it repeats r for at most twice the client's lease.
func (c *Client) releaseLate(ctx context.Context, r *driver.Release) {
	patient, stop := context.WithTimeout(ctx, 2*c.Config.Lease)
	defer stop()
	for wait := settleFirst; ; wait = min(2*wait, SettleMost) {
		attempt, cancel := context.WithTimeout(patient, SettleAttempt)
		err := c.Driver.Release(attempt, r)
		cancel()
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrClosed) {
			return
		}
		if !Pause(patient, wait) {
			c.Config.Logger.Warn("interlock: release after Close", "lock", r.Name, "engine", c.Machine.Traits.Engine, "err", err)
			return
		}
	}
}
