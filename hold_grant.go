package interlock

import (
	"strconv"
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
	m    *Mutex // by which it was asked for
	next *grant // in Client.grants, of the same listName; nil at the end
	id   string // of the request: release and renewal name the hold in the engine by it

	token  uint64        // the first of the block that the engine granted
	tokens int32         // the length of the block
	pass   int32         // how often it has passed on: the token in use is token+pass
	since  trust.Instant // when it was taken in; passes count their time from here

	holds list          // of its owner, ofGrant; empty only between two owners
	asked time.Duration // the longest lease that was ever asked for; the engine may hold that long whatever it answered

	// The trust window: lease, counted from sent; see hold_trust.go.
	sent  trust.Instant
	lease time.Duration

	own *engineSide // nil on most engines

	renewed   trust.Instant // when the last confirmed renewal was sent, or the acquisition
	notBefore trust.Instant // no renewal is sent before; see renewalDue

	index   int32 // in the scheduler's heap; -1 if it is not there
	phase   phase
	alone   bool // it never passes on: a named owner's, or one after which the engine has granted another
	failed  bool // the last renewal failed, so it neither passes on nor is retained
	between bool // nobody holds it: it is being renewed for a pass, kept for a cooldown, or retained

	recallable bool // the engine tells this client when another wants the lock, and the client may retain it
	recalled   bool // others may wait, so it must not be retained
	wantedNow  bool // the engine has said that another waits
	recallTold bool // the Observer has been told so
	shown      bool // an engine with sessions shows it as retained, or may do so

	mislabelled bool // the engine shows the label of another call; see relabel

	last *Lease // the latest hold while there is none: what events and operators are shown
}

// engineSide is what only some engines add to a grant. It stands apart because most engines need no more than the
// request's id.
type engineSide struct {
	nonce   string         // see noncePass
	session driver.Session // what keeps the hold alive; nil on engines without sessions
}

// nonce returns the nonce that the engine has given. Most engines give the id; then the reply's own string is not kept,
// because it would keep the whole reply in memory.
func (g *grant) nonce() string {
	if g.own == nil {
		return g.id
	}
	return g.own.nonce
}

// session returns what keeps g alive on an engine with sessions, and nil elsewhere.
func (g *grant) session() driver.Session {
	if g.own == nil {
		return nil
	}
	return g.own.session
}

// phase is how far a grant has come. It only ever moves forward.
type phase uint8

const (
	requested phase = iota // no answer has been processed yet
	revoked                // the engine took it back before its answer was processed
	live                   // it counts
	abandoned              // it counts, but its last hold leaves it to run out; see Lease.Abandon
	gone                   // given back or lost; nothing about it changes any more
)

// taken makes g live by the engine's answer a, at the instant now. Grants of one lock form a list, the newest first, so
// that passing and Look find them by name. The caller holds Client.mu.
func (g *grant) taken(a driver.Grant, now trust.Instant) {
	c := g.m.c
	g.phase = live
	g.token, g.tokens = a.Token, int32(min(max(a.Tokens, 1), mostPasses+1))
	// Most engines give the id as the nonce. Then nothing is allocated.
	if a.Nonce != g.id || a.Session != nil {
		g.own = &engineSide{a.Nonce, a.Session}
	}
	g.since, g.lease = now, a.Lease
	if c.hasLeases() {
		g.sent = c.at(a.Sent)
	}
	g.renewed = g.sent
	g.next = c.grants[g.listName()]
	c.grants[g.listName()] = g
}

// passing returns the grant that waiters for m get without the engine, or nil. There is at most one for a queueKey: a
// second one has alone set. The caller holds Client.mu.
func (c *Client) passing(m *Mutex) *grant {
	for g := c.grants[m.key().Name]; g != nil; g = g.next {
		if !g.alone && g.m.queueKey() == m.queueKey() {
			return g
		}
	}
	return nil
}

// admit makes l a hold on g. asked is when it was asked for; local says that no request was sent for it. The caller
// holds Client.mu.
func (g *grant) admit(l *Lease, asked, now trust.Instant, local bool) {
	c, p := g.m.c, l.m.p
	l.g, l.pass, l.waited, l.local = g, g.pass, now.Since(asked), local
	l.since, l.end = now, trust.Never
	// Nobody calls Acquired, so the end may be told at once.
	if c.opts.Observer.Acquired == nil {
		l.announced = announcedStart
	}
	if p.noRenew {
		l.end = g.fixedEnd(l.since, p.lease)
	}
	l.end = min(l.end, l.maxHoldEnd())
	if p.minHold > 0 {
		g.keepClosed(l.since.Plus(p.minHold), l)
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

// fixedEnd returns when a hold that is not renewed ends. That is after its lease, but no later than the trust window,
// so that it never outlives the engine's own lease. A grant that came by a push is short. So the window is computed
// from the lease that was asked for, which the claim brings.
func (g *grant) fixedEnd(now trust.Instant, lease time.Duration) trust.Instant {
	c := g.m.c
	if !c.hasLeases() {
		return now.Plus(lease) // a session or process goes on by itself
	}
	return min(now.Plus(lease), trust.Window{Sent: g.sent, Lease: max(g.lease, g.asked)}.EndWith(&c.suspensions))
}

// noncePass returns the nonce of one pass. It differs from that of every other acquisition, so that a fence can tell
// two holders apart even if their tokens are equal.
func (g *grant) noncePass(pass int32) string {
	if pass == 0 {
		return g.nonce()
	}
	return g.nonce() + "." + strconv.Itoa(int(pass))
}

// renewing reports whether g must be renewed: for a live hold, or for the retention. On engines with sessions only
// what is shown to operators is renewed, because the session keeps the hold. The caller holds Client.mu.
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
		if !l.m.p.noRenew || g.isShorterThan(l) {
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
		return g.lease, g.lease / 3
	case g.retained() != nil:
		return g.retainLease(), g.retainLease() / 2
	}
	for l := range g.holds.all(ofGrant) {
		p := l.m.p
		if p.noRenew && !g.isShorterThan(l) {
			continue
		}
		lease = max(lease, p.lease)
		if renewal == 0 || p.renewal < renewal {
			renewal = p.renewal
		}
	}
	return lease, renewal
}

// mayPass reports whether g may go on to another owner of this process, as far as the clients outside are concerned.
// The block must have a token left, and they must not have waited for longer than Options allow. The caller holds
// Client.mu.
func (g *grant) mayPass(now trust.Instant) bool {
	// A failed renewal leaves the grant in doubt, and whoever gets it next could not be told how long it lasts.
	if g.alone || g.m.p.noRenew || g.pass+1 >= g.tokens || g.failed {
		return false
	}
	if g.recallable && !g.recalled {
		return true // the engine would have told if anybody outside waited
	}
	opts := &g.m.c.opts
	return int(g.pass) < opts.LocalHandoffs && now.Since(g.since) < opts.LocalHandoffTime
}

// trustedEnough reports whether the trust that is left is worth passing on. With too little of it the receiver could
// lose the hold before a renewal is answered; such a grant is renewed first, or goes back. The caller holds Client.mu.
func (g *grant) trustedEnough(now trust.Instant) bool {
	switch g.m.c.traits.Lifetime {
	case driver.Process:
		return true
	// A sign of life is sent each third of the timeout, so a third may be missing, and one more while its reply is
	// under way.
	case driver.Sessions:
		return g.remaining(now) >= g.lease/3
	// Two thirds of the receiver's lease at least, and no more than all of it. If the receiver died, others would
	// otherwise wait for longer than it asked for.
	default:
		left, lease := g.remaining(now), g.m.p.lease
		return left >= lease*2/3 && left <= lease
	}
}

// worthRenewing reports whether a renewal would make g trustedEnough. It would not if the grant has too much left. The
// caller holds Client.mu.
func (g *grant) worthRenewing(now trust.Instant) bool {
	return g.m.c.hasLeases() && g.remaining(now) < g.m.p.lease*2/3
}

// releaseRequest returns the request that gives g back. Its Horizon is the longest lease that was asked for: so long a
// copy of the acquisition may still take effect.
func (g *grant) releaseRequest() *driver.Release {
	return &driver.Release{Key: g.m.key(), ID: g.id, Horizon: g.asked}
}

// drop ends g in this process: it is no longer renewed, passed on or watched. It sends nothing, so the caller releases
// g or leaves it to run out. The caller holds Client.mu.
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

// isShorterThan reports whether the engine has given less than the fixed lease of l: a push, which must be claimed
// although l is not renewed.
func (g *grant) isShorterThan(l *Lease) bool {
	return g.m.c.hasLeases() && l.end > g.window().End()
}

// listName returns the key of g in Client.grants. All grants of a mutex share the lock's name. Readers and permits go
// by their id, because they never meet in this process and there may be many of one lock. To drop one would otherwise
// walk all.
func (g *grant) listName() string {
	if g.m.p.share.direct {
		return g.id
	}
	return g.m.key().Name
}
