package interlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// cooldown is for how long a grant is not given on: to the end of a MinHold, or of a LockDelay after one of its holds
// was lost. Few grants have one, so they are kept beside them. Guarded by Client.mu.
//
// When such a grant is released early, an engine with leases keeps the lock closed for the cooldown (Release.Keep),
// which outlasts this process. What a session or a process holds ends with it in any case, so on those engines the
// grant stays in this process, held by nobody, and is given on at the end of the cooldown.
type cooldown struct {
	until instant
	delay instant // the part of it that follows a loss
	by    *Lease  // the only hold whose MinHold it is; nil if there are others, or a loss
	kept  bool    // nobody holds the grant any more, and it stays here
}

// close keeps g from others until that instant at least: for the MinHold of by, or if that is nil for more than one
// hold. The caller holds Client.mu.
func (g *grant) close(until instant, by *Lease) {
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

// delay keeps g from others because l, one of its holds, is being lost. The caller holds Client.mu.
func (g *grant) delay(l *Lease, now instant) {
	if l.m.p.lockDelay > 0 {
		until := now.plus(l.m.p.lockDelay)
		g.close(until, nil)
		r := g.m.c.cooldowns[g]
		r.delay = max(r.delay, until)
	}
}

// cooldown is for how much longer g is not to be given on. The caller holds Client.mu.
func (g *grant) cooldown() time.Duration {
	c := g.m.c
	if len(c.cooldowns) == 0 || c.cooldowns[g] == nil {
		return 0
	}
	return max(0, c.cooldowns[g].until.since(c.now()))
}

// keep is for how long the engine is to keep g closed when it is released now: no time if that is this process's part.
// The caller holds Client.mu.
func (g *grant) keep() time.Duration {
	if g.m.c.traits.Lifetime != driver.Leases {
		return 0
	}
	return g.cooldown()
}

// keepForCooldown keeps g, which nobody holds any more, in this process for its cooldown. It reports false if there is
// none, or if that is the engine's part. The caller holds Client.mu.
func (g *grant) keepForCooldown() bool {
	if g.m.c.traits.Lifetime == driver.Leases || g.cooldown() == 0 {
		return false
	}
	g.between, g.m.c.cooldowns[g].kept = true, true
	g.m.c.reschedule(g)
	return true
}

// keptUntil is when g, which nobody holds, is to be given on; never if it is not for a cooldown that nobody holds it.
// The caller holds Client.mu.
func (g *grant) keptUntil() instant {
	if r := g.m.c.cooldowns[g]; r != nil && r.kept {
		return r.until
	}
	return never
}

// keepsForCooldown reports whether the hold of key with that token is one that nobody holds any more, and that stays
// here for a cooldown.
func (c *Client) keepsForCooldown(key driver.Key, token uint64) bool {
	c.lock()
	defer c.unlock()
	g := c.grantOf(key, token)
	return g != nil && g.holds.first == nil && g.keptUntil() < never
}

// has reports whether this client has the hold of key with that token, or keeps it for a cooldown.
func (c *Client) has(key driver.Key, token uint64) bool {
	c.lock()
	defer c.unlock()
	return c.grantOf(key, token) != nil
}

// grantOf returns what this client has of key with that token, or nil. The caller holds Client.mu.
func (c *Client) grantOf(key driver.Key, token uint64) *grant {
	for g := c.grants[key.Name]; g != nil; g = g.next {
		if g.m.key() == key && g.token == token {
			return g
		}
	}
	return nil
}

// endCooldown gives g on if its cooldown is over. It reports whether the scheduler is done with it. The caller holds
// Client.mu.
func (g *grant) endCooldown(now instant) bool {
	if g.keptUntil() > now {
		return false
	}
	c := g.m.c
	delete(c.cooldowns, g)
	g.between = false
	if g.passOn(now) {
		return true
	}
	g.drop()
	c.settle(g.m, g.release())
	c.askFor(g.m)
	return true
}

// dropMinHold takes the MinHold off a hold that its owner never got to know: nothing was done under it. What others
// have asked for, also those that have ended, stays. The caller holds Client.mu.
func (l *Lease) dropMinHold() {
	if r := l.g.m.c.cooldowns[l.g]; r != nil && r.by == l {
		delete(l.g.m.c.cooldowns, l.g)
	}
}

// lateRelease is a release that is to be sent when its cooldown, or the time for which it was left to run out, is over.
type lateRelease struct {
	m  *Mutex
	r  *driver.Release
	at instant
}

// takeLater ends, for Close, every hold that this process has to keep for a cooldown or is to leave to run out, and
// returns what is to be released when that is over. The caller holds Client.mu.
func (c *Client) takeLater() []lateRelease {
	all := c.takeAllRunOuts()
	for g, r := range c.cooldowns {
		if c.traits.Lifetime == driver.Leases || g.cooldown() == 0 {
			continue
		}
		all = append(all, lateRelease{g.m, g.release(), r.until})
		c.dropGrant(g)
	}
	slices.SortFunc(all, func(a, b lateRelease) int { return cmp.Compare(a.at, b.at) })
	return all
}

// releaseLater releases what Close could not yet, and then closes what Open has opened. Nobody is left to be told of an
// error. What is not confirmed within twice the client's lease is freed by the end of the session or process.
func (c *Client) releaseLater(all []lateRelease) {
	ctx := context.Background() //nolint:forbidigo // the client's have ended
	for _, next := range all {
		pause(ctx, next.at.since(c.reading()))
		c.releaseLate(ctx, next.r)
	}
	if !c.owned {
		return
	}
	if err := c.d.Close(); err != nil {
		c.opts.Logger.Warn("interlock: close after what outlived Close", "engine", c.traits.Engine, "err", err)
	}
}

// releaseLate is settleNow after Close.
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
			c.opts.Logger.Warn("interlock: release after Close", "lock", r.Name, "engine", c.traits.Engine, "err", err)
			return
		}
	}
}
