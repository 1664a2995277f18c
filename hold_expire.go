package interlock

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// What ends by itself, or because the engine says so: the trust in a grant, and the time of a hold. The scheduler
// (renew_schedule.go) and every look at a lease call expire; the driver calls lostByEngine. hold_end.go tells the
// holder.

// expire ends g if its trust window is over, and those of its holds whose own end has come (NoRenew, MaxHold). It reads
// no clock, so that one judgement is made at one instant. The caller holds Client.mu.
func (c *core) expire(g *grant, now trust.Instant) {
	if g.Phase == grants.Gone {
		return
	}
	if end := g.deadline(); now >= end {
		c.loseAndRelease(g, g.LossReason(&c.env, now, end, g.renewing()))
		return
	}
	// The delay comes first: see grant.delay.
	for l := range g.holds.all(ofGrant) {
		if now >= l.end {
			// Before lose: see grant.delay.
			g.delay(l, now)
			l.lose(driver.LostExpired, nil)
		}
	}
	// Its last hold has ended by its own time. Nobody has unlocked it, so it goes back here.
	if g.holds.first == nil && !g.Between && (g.Phase == grants.Abandoned || !g.keepForCooldown()) {
		c.loseAndRelease(g, driver.LostExpired)
	}
}

// loseAndRelease loses g on this process's own judgement. The engine may still count it as held, so it is released as
// soon as the engine can be reached. It must not block others for longer than it protects anybody. The caller holds
// Client.mu.
//
// The release begins after the holder's contexts have been cancelled. Otherwise another owner could get in before the
// holder is told.
func (c *core) loseAndRelease(g *grant, reason LostReason) {
	for l := range g.holds.all(ofGrant) {
		g.delay(l, c.now())
	}
	// Everything about the release is read before lose, which drops g and its cooldown.
	give, left := g.releaseRequest(), g.Phase == grants.Abandoned || g.isPending()
	give.Keep = g.keep()
	after := g.runOutAfter()
	c.lose(g, reason, g.cause(reason))
	// Its holder asked that nobody give it back; see Lease.Abandon and Lease.Pending.
	if left {
		g.runOut(after)
		return
	}
	c.settle(g.m, give)
}

// lose ends g and all its holds as a loss. The waiters behind g are sent to the engine at once: the loser may never
// call Unlock, so they must not wait for it. The caller holds Client.mu.
func (c *core) lose(g *grant, reason LostReason, cause error) {
	if g.Phase == grants.Gone {
		return
	}
	for l := range g.holds.all(ofGrant) {
		l.lose(reason, cause)
	}
	g.drop()
	c.askFor(g.m)
}

// lostByEngine is Request.Lost: the engine reports that it took the hold back. The driver calls it from a goroutine of
// its own, perhaps before Acquire has returned. Then only a mark is left, because nobody has the hold yet.
func (g *grant) lostByEngine(reason LostReason, cause error) {
	c := g.m.client()
	c.lock()
	defer c.unlockInside()
	switch g.Phase {
	case grants.Requested:
		g.Phase = grants.Revoked
	case grants.Live, grants.Abandoned: // an abandoned one may still have holds
		c.lose(g, reason, cause)
	}
}
