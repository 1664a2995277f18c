package interlock

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// grant is one hold of the engine as this process sees it, from the request for it until it is given back or lost. An
// anonymous owner's re-entries share one grant; passed on inside the process it goes from owner to owner. A named owner
// has a grant for each Lock, because the engine itself counts those.
//
// Client.mu guards what may change. There is one for each lock that is held, so it is small: 136 bytes.
type grant struct {
	m    *Mutex // by which it was asked for
	next *grant // in Client.grants, of the same listName
	id   string // what release and renewal match in the engine

	token  uint64 // first of the block
	tokens int32  // length of the block
	pass   int32  // which token of the block is in use
	since  instant

	holds list          // of its owner, ofGrant; empty only between two owners
	asked time.Duration // the longest lease that was asked for

	// The trust window; see hold_trust.go.
	sent  instant
	lease time.Duration

	own *engineSide // nil of most

	renewed   instant // when the last confirmed renewal, or the acquisition, was sent
	notBefore instant // no renewal is sent before; see renewalDue

	index   int32 // in the scheduler's heap; -1 if not there
	phase   phase
	alone   bool // never passes on: a named owner's, or one that the engine has given to another since
	failed  bool // the last renewal did not succeed
	between bool // nobody holds it while it is renewed to be passed on, kept for a cooldown, or retained

	recallable bool // the engine tells this client when another wants the lock
	recalled   bool // others may wait, so the grant must not be retained
	wantedNow  bool // the engine has said that another waits
	recallTold bool // the Observer has been told of that
	shown      bool // an engine with sessions shows it as retained, or may

	mislabelled bool // the engine shows the label of another call, see relabel

	last *Lease // the latest hold, when there is none any more
}

// engineSide is what only some engines give with a grant. Most keep a hold by the request's id alone.
type engineSide struct {
	nonce   string // see noncePass
	session driver.Session
}

// nonce is the engine's. Where it is the id, nothing is kept of the reply that it was cut from.
func (g *grant) nonce() string {
	if g.own == nil {
		return g.id
	}
	return g.own.nonce
}

// session is what keeps g, on engines with sessions.
func (g *grant) session() driver.Session {
	if g.own == nil {
		return nil
	}
	return g.own.session
}

// phase is how far a grant has come.
type phase uint8

const (
	requested phase = iota // the answer has not been taken in
	revoked                // the engine took it back before its answer had been taken in
	live                   // somebody holds it
	abandoned              // somebody holds it, and when nobody does any more it is left to run out; see Lease.Abandon
	gone                   // given back or lost: nothing may happen to it any more
)

// taken takes in the engine's answer, at the instant now. The caller holds Client.mu.
func (g *grant) taken(a driver.Grant, now instant) {
	c := g.m.c
	g.phase = live
	g.token, g.tokens = a.Token, int32(min(max(a.Tokens, 1), mostPasses+1))
	if a.Nonce != g.id || a.Session != nil {
		g.own = &engineSide{a.Nonce, a.Session}
	}
	g.since, g.lease = now, a.Lease
	if c.traits.Lifetime == driver.Leases {
		g.sent = c.at(a.Sent)
	}
	g.renewed = g.sent
	g.next = c.grants[g.listName()]
	c.grants[g.listName()] = g
}

// passing returns the grant that waiters for m will get without the engine, or nil. The caller holds Client.mu.
func (c *Client) passing(m *Mutex) *grant {
	for g := c.grants[m.key().Name]; g != nil; g = g.next {
		if !g.alone && g.m.queueKey() == m.queueKey() {
			return g
		}
	}
	return nil
}

// admit makes l, which was asked for at the instant asked, a hold on g from now on. The caller holds Client.mu.
func (g *grant) admit(l *Lease, asked, now instant, local bool) {
	c, p := g.m.c, l.m.p
	l.g, l.pass, l.waited, l.local = g, g.pass, now.since(asked), local
	l.since, l.end = now, never
	if c.opts.Observer.Acquired == nil {
		l.announced = announcedStart
	}
	if p.noRenew {
		l.end = g.fixedEnd(l.since, p.lease)
	}
	l.end = min(l.end, l.last())
	if p.minHold > 0 {
		g.close(l.since.plus(p.minHold), l)
	}
	g.last = nil
	g.holds.add(ofGrant, l)
	g.relabel(l)
	l.owner.add(l)
	c.reschedule(g)
}

// holder is the oldest hold on g, or between two owners the latest. The caller holds Client.mu.
func (g *grant) holder() *Lease {
	if g.holds.first == nil {
		return g.last
	}
	return g.holds.first
}

// fixedEnd is when a hold that is not renewed ends: after its lease, but with the trust window at the latest, so that
// it never outlives the engine's own lease.
func (g *grant) fixedEnd(now instant, lease time.Duration) instant {
	c := g.m.c
	if c.traits.Lifetime != driver.Leases {
		return now.plus(lease) // a session or process goes on by itself
	}
	return min(now.plus(lease), trustEnd(g.sent, max(g.lease, g.asked)).plus(-c.suspensions.since(g.sent)))
}

// noncePass is the nonce of one pass: of one acquisition, and no other.
func (g *grant) noncePass(pass int32) string {
	if pass == 0 {
		return g.nonce()
	}
	return g.nonce() + "." + strconv.Itoa(int(pass))
}

// renewing reports whether a live hold, or the retention, wants g renewed.
func (g *grant) renewing() bool {
	switch {
	case g.m.c.renewer == nil:
		return false
	case g.retained() != nil:
		return true
	case g.m.c.hasSessions():
		return g.shown
	}
	for l := range g.holds.all(ofGrant) {
		if !l.m.p.noRenew || g.short(l) {
			return true
		}
	}
	return false
}

// wanted returns the lease to renew g for and the pause until then: the longest and the shortest that a hold asks for.
func (g *grant) wanted() (lease, renewal time.Duration) {
	switch {
	case g.m.c.hasSessions():
		return g.lease, g.lease / 3
	case g.retained() != nil:
		return g.retainLease(), g.retainLease() / 2
	}
	for l := range g.holds.all(ofGrant) {
		p := l.m.p
		if p.noRenew && !g.short(l) {
			continue
		}
		lease = max(lease, p.lease)
		if renewal == 0 || p.renewal < renewal {
			renewal = p.renewal
		}
	}
	return lease, renewal
}

// mayPass reports whether g may go on to another owner of this process without the engine, as far as the others outside
// are concerned: the block has a token left, and they have not waited for too long.
func (g *grant) mayPass(now instant) bool {
	if g.alone || g.m.p.noRenew || g.pass+1 >= g.tokens || g.failed {
		return false
	}
	if g.recallable && !g.recalled {
		return true // nobody outside waits
	}
	opts := &g.m.c.opts
	return int(g.pass) < opts.LocalHandoffs && now.since(g.since) < opts.LocalHandoffTime
}

// trustedEnough reports whether the trust that the receiver of a pass gets is worth having.
func (g *grant) trustedEnough(now instant) bool {
	switch g.m.c.traits.Lifetime {
	case driver.Process:
		return true
	case driver.Sessions: // confirmed each third of the timeout, so a third may be missing, and the reply under way
		return g.remaining(now) >= g.lease/3
	default: // more than the receiver asked for is not his either: others would wait for longer if he died
		left, lease := g.remaining(now), g.m.p.lease
		return left >= lease*2/3 && left <= lease
	}
}

// worthRenewing reports whether a renewal would make g trustedEnough.
func (g *grant) worthRenewing(now instant) bool {
	return g.m.c.hasLeases() && g.remaining(now) < g.m.p.lease*2/3
}

// release is what gives g back to the engine.
func (g *grant) release() *driver.Release {
	return &driver.Release{Key: g.m.key(), ID: g.id, Horizon: g.asked}
}

// drop ends g in this process: nothing is renewed, passed or watched any more. The caller holds Client.mu.
func (g *grant) drop() {
	c, name := g.m.c, g.listName()
	g.phase = gone
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

// short reports that the engine has given less than the fixed lease of l: a push that must be claimed.
func (g *grant) short(l *Lease) bool {
	return g.m.c.traits.Lifetime == driver.Leases && l.end > trustEnd(g.sent, g.lease)
}

// listName names the list of Client.grants in which g is: one for all of a mutex, and one for each of those that never
// meet in this process, of which there may be many.
func (g *grant) listName() string {
	if g.m.p.share.direct {
		return g.id
	}
	return g.m.key().Name
}
