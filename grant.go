package interlock

import (
	"strconv"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// grant is one hold of the engine as this process sees it, from the engine's grant until it is given back or lost. An
// anonymous owner's re-entries share one grant; passed on inside the process it goes from owner to owner. A named owner
// has a grant for each Lock, because the engine itself counts those.
//
// Everything in it is guarded by Client.mu.
type grant struct {
	c   *Client
	key driver.Key
	id  string // what release and renewal match in the engine
	q   *queue // where it passes on; nil for named owners

	token  uint64 // first of the block
	tokens int    // length of the block
	pass   int    // which token of the block is in use
	nonce  string // the engine's; see stamp
	since  time.Time

	owner *owner
	holds []*Lease // live ones of owner; empty only between two owners

	asked time.Duration // the longest lease that was asked for

	// The trust window; see trust.go.
	sent    time.Time
	lease   time.Duration
	session driver.Session

	renewed   time.Time // when the last confirmed renewal, or the acquisition, was sent
	notBefore time.Time // no renewal is sent before; see renewalDue
	failed    bool      // the last renewal did not succeed

	due   time.Time // when the scheduler looks at g next
	index int       // in the scheduler's heap; -1 if not there

	between bool  // nobody holds it while it is renewed to be passed on
	gone    bool  // given back or lost: nothing may happen to it any more
	loss    error // the *LostError of its holds, if it was lost
}

// newGrant takes in the engine's answer to r. The caller holds Client.mu.
func (c *Client) newGrant(r *driver.Request, a driver.Grant) *grant {
	g := &grant{
		c: c, key: r.Key, id: r.ID, asked: r.Lease,
		token: a.Token, tokens: max(a.Tokens, 1), nonce: a.Nonce,
		since: c.now(), sent: a.Sent, renewed: a.Sent, lease: a.Lease, session: a.Session,
		index: -1,
	}
	c.grants[g.id] = g
	return g
}

// admit gives g to one more hold of o. The caller holds Client.mu.
func (g *grant) admit(o *owner, m *Mutex, waited time.Duration, local bool) *Lease {
	now := g.c.now()
	l := &Lease{
		c: g.c, g: g, key: g.key, owner: o, class: m.p.class, label: m.p.label,
		token: g.token + uint64(g.pass), nonce: g.passNonce(),
		renewal: m.p.renewal, lease: m.p.lease, noRenew: m.p.noRenew,
		since: now, waited: waited, local: local,
	}
	if m.p.noRenew {
		l.end = g.fixedEnd(now, m.p.lease)
	}
	if m.p.maxHold > 0 {
		l.last = now.Add(m.p.maxHold)
		if l.end.IsZero() || l.last.Before(l.end) {
			l.end = l.last
		}
	}
	g.owner = o
	g.holds = append(g.holds, l)
	o.add(l)
	g.c.reschedule(g)
	return l
}

// fixedEnd is when a hold that is not renewed ends: after its lease, but with the trust window at the latest, so that it
// never outlives the engine's own lease.
func (g *grant) fixedEnd(now time.Time, lease time.Duration) time.Time {
	if g.c.traits.Ends != driver.Leases {
		return now.Add(lease) // a session or process goes on by itself
	}
	return earlier(now.Add(lease), trustEnd(g.sent, max(g.lease, g.asked)).Add(-g.c.sleep.since(g.sent)))
}

// passNonce is the nonce of the present pass: of one acquisition, and no other.
func (g *grant) passNonce() string {
	if g.pass == 0 {
		return g.nonce
	}
	return g.nonce + "." + strconv.Itoa(g.pass)
}

// renewing reports whether a live hold wants g renewed.
func (g *grant) renewing() bool {
	for _, l := range g.holds {
		if !l.noRenew || g.short(l) {
			return true
		}
	}
	return false
}

// wanted returns the lease to renew g for and the pause until then: the longest and the shortest that a hold asks for.
func (g *grant) wanted() (lease, renewal time.Duration) {
	for _, l := range g.holds {
		if l.noRenew && !g.short(l) {
			continue
		}
		lease = max(lease, l.lease)
		if renewal == 0 || l.renewal < renewal {
			renewal = l.renewal
		}
	}
	return lease, renewal
}

// passable reports whether g may go on to another owner of this process without the engine, as far as the others outside
// are concerned: the block has a token left, and they have not waited for too long.
func (g *grant) passable(now time.Time) bool {
	if g.q == nil || g.q.key.noRenew || g.pass+1 >= g.tokens || g.failed {
		return false
	}
	return g.pass < g.c.opts.LocalPasses && now.Sub(g.since) < g.c.opts.LocalTime
}

// trusted reports whether the trust that the receiver of a pass gets is worth having.
func (g *grant) trusted(now time.Time) bool {
	switch g.c.traits.Ends {
	case driver.Process:
		return true
	case driver.Sessions: // confirmed each third of the timeout, so a third may be missing, and the reply under way
		return g.remaining(now) >= g.lease/3
	default: // more than the receiver asked for is not his either: others would wait for longer if he died
		left := g.remaining(now)
		return left >= g.q.key.lease*2/3 && left <= g.q.key.lease
	}
}

// worthRenewing reports whether a renewal would make g trusted.
func (g *grant) worthRenewing(now time.Time) bool {
	return g.c.renewer != nil && g.remaining(now) < g.q.key.lease*2/3
}

// release is what gives g back to the engine.
func (g *grant) release() *driver.Release {
	return &driver.Release{Key: g.key, ID: g.id, Horizon: g.asked}
}

// drop ends g in this process: nothing is renewed, passed or watched any more. The caller holds Client.mu.
func (g *grant) drop() {
	g.gone = true
	g.c.unschedule(g)
	delete(g.c.grants, g.id)
	if g.q != nil && g.q.grant == g {
		g.q.grant = nil
	}
}

// short reports that the engine has given less than the fixed lease of l: a push that must be claimed.
func (g *grant) short(l *Lease) bool {
	return g.c.traits.Ends == driver.Leases && l.end.After(trustEnd(g.sent, g.lease))
}
