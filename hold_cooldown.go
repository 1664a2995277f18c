package interlock

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
func (c *Client) keepsForCooldown(key driver.Key, token uint64) bool {
	c.lock()
	defer c.unlock()
	g := c.core.EngineHoldOf(key, token)
	return g != nil && g.Holds.First == nil && g.CooldownEnd() < trust.Never
}

// has reports whether this client has the hold of key with that token, held or kept for a cooldown.
func (c *Client) has(key driver.Key, token uint64) bool {
	c.lock()
	defer c.unlock()
	return c.core.EngineHoldOf(key, token) != nil
}

// takeLater ends, for Close, every hold that this process must keep for a cooldown or leave to run out. It returns what
// must be released when that time is over, the earliest first. The caller holds Machine.Mu.
func (c *Client) takeLater() []core.LateRelease {
	all := c.takeAllRunOuts()
	for g, r := range c.core.Cooldowns {
		if c.core.HasLeases() || g.Cooldown() == 0 {
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
		pause(ctx, next.At.Since(c.reading()))
		c.releaseLate(ctx, next.Release)
	}
	if !c.owned {
		return
	}
	if err := c.d.Close(); err != nil {
		c.opts.Logger.Warn("interlock: close after what outlived Close", "engine", c.core.Traits.Engine, "err", err)
	}
}

// releaseLate is settleNow after Close: it repeats r for at most twice the client's lease.
func (c *Client) releaseLate(ctx context.Context, r *driver.Release) {
	patient, stop := context.WithTimeout(ctx, 2*c.opts.Lease)
	defer stop()
	for wait := settleFirst; ; wait = min(2*wait, settleMost) {
		attempt, cancel := context.WithTimeout(patient, settleAttempt)
		err := c.d.Release(attempt, r)
		cancel()
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed) {
			return
		}
		if !pause(patient, wait) {
			c.opts.Logger.Warn("interlock: release after Close", "lock", r.Name, "engine", c.core.Traits.Engine, "err", err)
			return
		}
	}
}
