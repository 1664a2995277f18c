package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// cooldown keeps a grant from other owners until the end of a MinHold, or of a LockDelay after one of its holds was
// lost. Few grants have one, so cooldowns stand in a map beside them. Guarded by Client.mu.
//
// An engine with leases keeps the lock closed by itself (Release.Keep), which outlasts this process. What a session or
// a process holds ends with it in any case. So on those engines the grant stays in this process, held by nobody, and
// passes on at the end of the cooldown.
type cooldown struct {
	until trust.Instant
	delay trust.Instant // the part of it that follows a loss: it ends here
	by    *Lease        // the only hold whose MinHold it is; nil if it is of several, or follows a loss
	kept  bool          // nobody holds the grant any more, and this process keeps it
}

// keepClosed keeps g from others until the instant until at least. by is the hold whose MinHold that is; nil means
// several, or a loss. dropMinHold can take back only what is one hold's. The caller holds Client.mu.
func (g *grant) keepClosed(until trust.Instant, by *Lease) {
	c := g.m.c
	r := c.cooldowns[g]
	switch {
	case r != nil:
		if r.by != by && r.until > c.now() {
			by = nil
		}
		r.until, r.by = max(r.until, until), by
		return
	case c.cooldowns == nil:
		c.cooldowns = make(map[*grant]*cooldown)
	}
	c.cooldowns[g] = &cooldown{until: until, by: by}
}

// delay begins the LockDelay of l, one of the holds on g, because l is being lost. A hold that re-entered has at least
// the LockDelay of the first: that is the one that the engine knows. It comes before the hold is taken off g: from then
// on only the cooldown keeps g from others. The caller holds Client.mu.
func (g *grant) delay(l *Lease, now trust.Instant) {
	if delay := max(l.m.p.LockDelay, g.m.p.LockDelay); delay > 0 {
		until := now.Plus(delay)
		g.keepClosed(until, nil)
		r := g.m.c.cooldowns[g]
		r.delay = max(r.delay, until)
	}
}

// cooldown returns for how much longer g must not pass on; 0 for most grants. The caller holds Client.mu.
func (g *grant) cooldown() time.Duration {
	c := g.m.c
	if len(c.cooldowns) == 0 || c.cooldowns[g] == nil {
		return 0
	}
	return max(0, c.cooldowns[g].until.Since(c.now()))
}

// keep returns how long the engine must keep the lock closed if g is released now: 0 where this process keeps it.
// The caller holds Client.mu.
func (g *grant) keep() time.Duration {
	if !g.m.c.hasLeases() {
		return 0
	}
	return g.cooldown()
}

// keepForCooldown keeps g, which nobody holds any more, in this process until its cooldown is over. It reports false if
// there is none, or if the engine does that. The caller holds Client.mu.
func (g *grant) keepForCooldown() bool {
	if g.m.c.hasLeases() || g.cooldown() == 0 {
		return false
	}
	g.Between, g.m.c.cooldowns[g].kept = true, true
	g.m.c.reschedule(g)
	return true
}

// keptUntil returns when g, which this process keeps for a cooldown, is to pass on; never for every other grant. The
// caller holds Client.mu.
func (g *grant) keptUntil() trust.Instant {
	if r := g.m.c.cooldowns[g]; r != nil && r.kept {
		return r.until
	}
	return trust.Never
}

// grantOf returns this client's grant of key with that token, or nil. The caller holds Client.mu.
func (c *core) grantOf(key driver.Key, token uint64) *grant {
	for g := c.grants[key.Name]; g != nil; g = g.next {
		if g.m.key() == key && g.Token == token {
			return g
		}
	}
	return nil
}

// endCooldown passes g on, or gives it back, if its cooldown is over. It reports whether the scheduler is done with g.
// The caller holds Client.mu.
func (g *grant) endCooldown(now trust.Instant) bool {
	if g.keptUntil() > now {
		return false
	}
	c := g.m.c
	delete(c.cooldowns, g)
	g.Between = false
	if g.goOn(now, grants.Around{}) {
		g.giveBack()
	}
	return true
}

// dropMinHold takes back the MinHold of a hold that its owner never got to know: nothing was done under it. What other
// holds have asked for stays, even of those that have ended. The caller holds Client.mu.
func (l *Lease) dropMinHold() {
	if r := l.g.m.c.cooldowns[l.g]; r != nil && r.by == l {
		delete(l.g.m.c.cooldowns, l.g)
	}
}

// lateRelease is a release that is sent when its cooldown is over, or the time for which the lock was left to run out.
type lateRelease struct {
	m  *lock
	r  *driver.Release
	at trust.Instant // not before
}
