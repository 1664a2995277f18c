package interlock

import (
	"github.com/interlock-go/interlock/internal/grants"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// A grant is what the engine has given: one for each acquisition, on which the holds of an owner rest. acquire_fetch.go
// and acquire_local.go make it of the engine's answer. hold_trust.go says until when it counts, renew.go prolongs it,
// and release.go passes it on or gives it back.

// grant is one hold of the engine as this process sees it, from the request for it until it is given back or lost. The
// re-entries of an anonymous owner share one grant, and inside the process it may pass from owner to owner. A named
// owner has a grant for each Lock, because the engine itself counts those.
//
// Client.mu guards what may change. There is one grant for each lock that is held, so it is small: 136 bytes.
type grant struct {
	grants.Grant
	m     *lock  // by which it was asked for
	next  *grant // in Client.grants, of the same listName; nil at the end
	holds list   // of its owner, ofGrant; empty only between two owners
	last  *Lease // the latest hold while there is none: what events and operators are shown
	index int32  // in the scheduler's heap; -1 if it is not there
}

// newGrant returns what the request of that id becomes when the engine grants it.
func (m *lock) newGrant(id string) *grant {
	return &grant{Grant: grants.Grant{ID: id, Asked: m.p.Lease}, m: m, index: -1}
}

// taken makes g live by the engine's answer a, at the instant now. Grants of one lock form a list, the newest first, so
// that passing and Look find them by name. The caller holds Client.mu.
func (g *grant) taken(a driver.Grant, now trust.Instant) {
	c := g.m.c
	g.Take(&c.env, a, now)
	g.next = c.grants[g.listName()]
	c.grants[g.listName()] = g
}

// passing returns the grant that waiters for m get without the engine, or nil. There is at most one for a queueKey: a
// second one has alone set. The caller holds Client.mu.
func (c *core) passing(m *lock) *grant {
	for g := c.grants[m.key().Name]; g != nil; g = g.next {
		if !g.Alone && g.m.queueKey() == m.queueKey() {
			return g
		}
	}
	return nil
}

// admit makes l a hold on g. asked is when it was asked for; local says that no request was sent for it. The caller
// holds Client.mu.
func (g *grant) admit(l *Lease, asked, now trust.Instant, local bool) {
	c, p := g.m.c, l.m.p
	l.g, l.pass, l.waited, l.local = g, g.Pass, now.Since(asked), local
	l.since, l.end = now, trust.Never
	// Nobody calls Acquired, so the end may be told at once.
	if !c.hears {
		l.announced = announcedStart
	}
	if p.NoRenew {
		l.end = g.FixedEnd(&c.env, l.since, p.Lease)
	}
	l.end = min(l.end, l.maxHoldEnd())
	if p.MinHold > 0 {
		g.keepClosed(l.since.Plus(p.MinHold), l)
	}
	g.last = nil
	g.holds.add(ofGrant, l)
	g.relabel(l)
	l.owner.add(l)
	c.reschedule(g)
}

// holder returns the oldest hold on g, or the latest one while nobody holds it. The caller holds Client.mu.
func (g *grant) holder() *Lease {
	if g.holds.first == nil {
		return g.last
	}
	return g.holds.first
}

// renewing reports whether g must be renewed: for a live hold, or for the retention. On engines with sessions only
// what is shown to operators is renewed, because the session keeps the hold. The caller holds Client.mu.
func (g *grant) renewing() bool {
	switch {
	case !g.m.c.renews:
		return false
	case g.retained() != nil:
		return true
	case g.m.c.hasSessions():
		return g.Shown
	}
	for l := range g.holds.all(ofGrant) {
		if !l.m.p.NoRenew || g.isShorterThan(l) {
			return true
		}
	}
	return false
}

// renewalTerms returns the lease to renew g for and the interval between two renewals. They are the longest lease and
// the shortest interval that any of its holds asks for. Both are 0 if none needs renewal. The caller holds Client.mu.
func (g *grant) renewalTerms() (lease, renewal time.Duration) {
	switch {
	case g.m.c.hasSessions():
		return g.Window.Lease, g.Window.Lease / 3
	case g.retained() != nil:
		return g.m.p.RetainLease(), g.m.p.RetainLease() / 2
	}
	for l := range g.holds.all(ofGrant) {
		p := l.m.p
		if p.NoRenew && !g.isShorterThan(l) {
			continue
		}
		lease = max(lease, p.Lease)
		if renewal == 0 || p.Renewal < renewal {
			renewal = p.Renewal
		}
	}
	return lease, renewal
}

// releaseRequest returns the request that gives g back. Its Horizon is the longest lease that was asked for: so long a
// copy of the acquisition may still take effect.
func (g *grant) releaseRequest() *driver.Release {
	return &driver.Release{Key: g.m.key(), ID: g.ID, Horizon: g.Asked}
}

// drop ends g in this process: it is no longer renewed, passed on or watched. It sends nothing, so the caller releases
// g or leaves it to run out. The caller holds Client.mu.
func (g *grant) drop() {
	c, name := g.m.c, g.listName()
	g.Phase = grants.Gone
	c.unschedule(g)
	delete(c.cooldowns, g)
	delete(c.failures, g)
	c.retention.forget(g)
	if first := c.grants[name]; first != g {
		for first.next != g {
			first = first.next
		}
		first.next = g.next
	} else if g.next != nil {
		c.grants[name] = g.next
	} else {
		delete(c.grants, name)
	}
	g.next = nil
}

// isShorterThan reports whether the engine has given less than the fixed lease of l: a push, which must be claimed
// although l is not renewed.
func (g *grant) isShorterThan(l *Lease) bool {
	return g.m.c.hasLeases() && l.end > g.Window.End()
}

// listName returns the key of g in Client.grants. All grants of a mutex share the lock's name. Readers and permits go
// by their id, because they never meet in this process and there may be many of one lock. To drop one would otherwise
// walk all.
func (g *grant) listName() string {
	if g.m.p.share.direct {
		return g.ID
	}
	return g.m.key().Name
}
