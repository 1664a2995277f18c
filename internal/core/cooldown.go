package core

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// cooldown keeps a grant from other owners until the end of a MinHold, or of a LockDelay after one of its holds was
// lost. Few grants have one, so cooldowns stand in a map beside them. Guarded by Machine.Mu.
//
// An engine with leases keeps the lock closed by itself (Release.Keep), which outlasts this process. What a session or
// a process holds ends with it in any case. So on those engines the grant stays in this process, held by nobody, and
// passes on at the end of the cooldown.
type cooldown struct {
	Until trust.Instant
	delay trust.Instant // the part of it that follows a loss: it ends here
	by    *Hold         // the only hold whose MinHold it is; nil if it is of several, or follows a loss
	kept  bool          // nobody holds the grant any more, and this process keeps it
}

// closeUntil keeps g from others until the instant until at least. by is the hold whose MinHold that is; nil means
// several, or a loss. DropMinHold can take back only what is one hold's. The caller holds Machine.Mu.
func (g *EngineHold) closeUntil(until trust.Instant, by *Hold) {
	c := g.Lock.Core
	r := c.Cooldowns[g]
	switch {
	case r != nil:
		if r.by != by && r.Until > c.Now() {
			by = nil
		}
		r.Until, r.by = max(r.Until, until), by
		return
	case c.Cooldowns == nil:
		c.Cooldowns = make(map[*EngineHold]*cooldown)
	}
	c.Cooldowns[g] = &cooldown{Until: until, by: by}
}

// delay begins the LockDelay of l, one of the holds on g, because l is being lost. A hold that re-entered has at least
// the LockDelay of the first: that is the one that the engine knows. It comes before the hold is taken off g: from then
// on only the cooldown keeps g from others. The caller holds Machine.Mu.
func (g *EngineHold) delay(l *Hold, now trust.Instant) {
	if delay := max(l.Lock.Terms.LockDelay, g.Lock.Terms.LockDelay); delay > 0 {
		until := now.Plus(delay)
		g.closeUntil(until, nil)
		r := g.Lock.Core.Cooldowns[g]
		r.delay = max(r.delay, until)
	}
}

// Cooldown returns for how much longer g must not pass on; 0 for most grants. The caller holds Machine.Mu.
func (g *EngineHold) Cooldown() time.Duration {
	c := g.Lock.Core
	if len(c.Cooldowns) == 0 || c.Cooldowns[g] == nil {
		return 0
	}
	return max(0, c.Cooldowns[g].Until.Since(c.Now()))
}

// EngineCooldown returns how long the engine must keep the lock closed if g is released now: 0 where this process keeps
// it. The caller holds Machine.Mu.
func (g *EngineHold) EngineCooldown() time.Duration {
	if !g.Lock.Core.HasLeases() {
		return 0
	}
	return g.Cooldown()
}

// coolDown keeps g, which nobody holds any more, in this process until its cooldown is over. It reports false if
// there is none, or if the engine does that. The caller holds Machine.Mu.
func (g *EngineHold) coolDown() bool {
	if g.Lock.Core.HasLeases() || g.Cooldown() == 0 {
		return false
	}
	g.Between, g.Lock.Core.Cooldowns[g].kept = true, true
	g.Lock.Core.Reschedule(g)
	return true
}

// CooldownEnd returns when g, which this process keeps for a cooldown, is to pass on; never for every other grant. The
// caller holds Machine.Mu.
func (g *EngineHold) CooldownEnd() trust.Instant {
	if r := g.Lock.Core.Cooldowns[g]; r != nil && r.kept {
		return r.Until
	}
	return trust.Never
}

// EngineHoldOf returns this client's grant of key with that token, or nil. The caller holds Machine.Mu.
func (c *Machine) EngineHoldOf(key driver.Key, token uint64) *EngineHold {
	for g := c.EngineHolds[key.Name]; g != nil; g = g.After {
		if g.Lock.Key() == key && g.Token == token {
			return g
		}
	}
	return nil
}

// endCooldown passes g on, or gives it back, if its cooldown is over. It reports whether the scheduler is done with g.
// The caller holds Machine.Mu.
func (g *EngineHold) endCooldown(now trust.Instant) bool {
	if g.CooldownEnd() > now {
		return false
	}
	c := g.Lock.Core
	delete(c.Cooldowns, g)
	g.Between = false
	if g.GoOn(now, grants.Around{}) {
		g.GiveBack()
	}
	return true
}

// DropMinHold takes back the MinHold of a hold that its owner never got to know: nothing was done under it. What other
// holds have asked for stays, even of those that have ended. The caller holds Machine.Mu.
func (l *Hold) DropMinHold() {
	if r := l.Engine.Lock.Core.Cooldowns[l.Engine]; r != nil && r.by == l {
		delete(l.Engine.Lock.Core.Cooldowns, l.Engine)
	}
}

// LateRelease is a release that is sent when its cooldown is over, or the time for which the lock was left to run out.
type LateRelease struct {
	Lock    *Lock
	Release *driver.Release
	At      trust.Instant // not before
}
