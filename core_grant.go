package interlock

import (
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

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
	if !c.hasLeases() { // else renewals tell the engine; see renewalFor
		g.Asked = max(g.Asked, p.Lease)
	}
	if p.MinHold > 0 {
		g.keepClosed(l.since.Plus(p.MinHold), l)
	}
	g.relabel(l)
	g.last = nil
	g.holds.add(ofGrant, l)
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

// deadline returns the end of the trust window of g. The caller holds Client.mu.
func (g *grant) deadline() trust.Instant { return g.Deadline(&g.m.c.env) }

// remaining returns how much of it is left. The caller holds Client.mu.
func (g *grant) remaining(now trust.Instant) time.Duration { return g.Remaining(&g.m.c.env, now) }

// trusted returns the end of the trust in all that l rests on: an upgraded hold rests on two grants, and ends with the
// first. The caller holds Client.mu.
func (l *Lease) trusted() trust.Instant {
	if l.upgradePair != nil {
		return min(l.g.deadline(), l.upgradePair.g.deadline())
	}
	return l.g.deadline()
}

// tooLate reports whether answer is over before anybody got the hold. The caller holds Client.mu.
func (c *core) tooLate(answer driver.Grant, now trust.Instant) bool {
	return grants.TooLate(&c.env, answer, now)
}

// list is some leases in the order in which they came. It is linked through the leases themselves: nearly always it has
// one member, for which a slice would cost more than the links. Adding and removing cost the same for any length.
type list struct{ first *Lease }

// links are the neighbours of a lease in one list.
type links struct {
	next *Lease // nil at the end
	prev *Lease // of the first lease it is the last; nil outside of a list
}

// listKind says which list: a lease is in at most one of each kind, so its links are an array.
type listKind int

const (
	ofGrant   listKind = iota // the live holds on a grant
	ofOwner                   // what an owner has not unlocked yet, lost holds included
	listKinds                 // how many there are
)

// add puts l at the end. l must not be in a list of that kind.
func (s *list) add(by listKind, l *Lease) {
	if s.first == nil {
		s.first, l.in[by].prev = l, l
		return
	}
	last := s.first.in[by].prev
	last.in[by].next, l.in[by].prev, s.first.in[by].prev = l, last, l
}

// remove takes l out. It does nothing if l is in no list of that kind; it must not be in another one.
func (s *list) remove(by listKind, l *Lease) {
	at := &l.in[by]
	switch {
	case at.prev == nil:
		return
	case s.first == l:
		s.first = at.next
	default:
		at.prev.in[by].next = at.next
	}
	switch {
	case at.next != nil:
		at.next.in[by].prev = at.prev
	case s.first != nil:
		s.first.in[by].prev = at.prev // it was the last
	}
	*at = links{}
}

// all yields the members, the oldest first. The loop may take out the one that was just yielded, and no other.
func (s *list) all(by listKind) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		for l := s.first; l != nil; {
			next := l.in[by].next
			if !yield(l) {
				return
			}
			l = next
		}
	}
}

// pendingRelease is a release whose confirmation is awaited. The zero value is none: there is nothing to release.
type pendingRelease struct {
	l     *Lease
	until trust.Instant // when the trust window would have ended; see confirmed
	keep  time.Duration // how long the engine keeps the lock closed
}

func (w pendingRelease) none() bool { return w.l == nil }

func (w pendingRelease) releaseRequest() *driver.Release {
	r := w.l.g.releaseRequest()
	r.Keep = w.keep
	return r
}

// giveUp ends the hold and gives the lock to whoever is next: the owner's other holds, the next waiter in this process,
// this client's retention, or the engine. What it returns must be awaited exactly once, after Client.mu has been given
// up, because it is counted as background. The caller holds Client.mu.
func (l *Lease) giveUp(now trust.Instant) pendingRelease {
	g := l.g
	c := g.m.c
	l.release(now)
	if g.holds.first != nil {
		c.reschedule(g)
		return pendingRelease{}
	}
	if !g.goOn(now, grants.Around{CanRetain: !c.closed}) {
		return pendingRelease{}
	}
	w := pendingRelease{l: l, until: g.deadline(), keep: g.keep()}
	g.drop()
	c.background.Add(1) // under Client.mu, so that Close waits for what is under way
	// Whoever waits here asks after the release; see releaseLocal.
	if c.traits.Local {
		return w
	}
	c.askFor(g.m)
	return w
}

// goOn decides what becomes of g, which nobody holds any more, and does it. It reports true if the caller is to release
// g. The caller holds Client.mu.
func (g *grant) goOn(now trust.Instant, a grants.Around) (release bool) {
	c, q := g.m.c, g.waitingQueue()
	// The line goes by the terms of the request, which its waiters share. Retention goes by those of the hold that
	// ended: it may have come by another Mutex of the lock.
	a.CanRetain = a.CanRetain && g.last.m.p.Retain > 0
	a.Cooldown, a.Waiting, a.CanRequeue = g.cooldown(), q != nil, c.requeues && q != nil && q.fetch == nil
	switch g.Next(&c.env, &g.m.p.Terms, now, a) {
	case grants.RunOut:
		g.leave()
	case grants.KeepClosed:
		g.keepForCooldown()
	case grants.PassOn:
		g.Pass++
		q.serve(g, true)
	case grants.RenewFirst:
		// Nobody holds g until the renewal is answered. It keeps its place, so that waiters which come meanwhile stand
		// behind it and ask nothing.
		g.Between = true
		c.emit(effect{verb: renewForPass, grant: g}) // ends with the renewal, which is bounded
	case grants.Requeue:
		g.drop()
		q.startFetch(g.releaseRequest())
	case grants.Retain:
		return !g.retain(now)
	case grants.GiveBack:
		return true
	}
	return false
}

// giveBack releases g in the background, and asks anew for the waiters of this process. The caller holds Client.mu.
func (g *grant) giveBack() {
	g.drop()
	g.m.c.settle(g.m, g.releaseRequest())
	g.m.c.askFor(g.m)
}

// waitingQueue returns the queue to which g passes on, or nil if nobody waits there or g never passes on. The caller
// holds Client.mu.
func (g *grant) waitingQueue() *queue {
	q := g.m.c.queues[g.m.queueKey()]
	if g.Alone || q == nil || q.waiters.first == nil {
		return nil
	}
	return q
}

// settle releases in the background what the request of g may have left. undo says that its outcome is unknown: then
// the engine also takes away a place in its queue, and refuses late copies of the request. The caller holds Client.mu.
func (g *grant) settle(undo bool) {
	give := g.releaseRequest()
	give.Undo = undo
	g.m.c.settle(g.m, give)
}

// decline releases such a hold and does not wait for the engine. The caller holds Client.mu.
func (l *Lease) decline() {
	l.owner.remove(l)
	if l.ended() != nil {
		return
	}
	l.dropMinHold()
	if left := l.giveUp(l.m.c.now()); !left.none() {
		l.m.c.emit(effect{verb: finishRelease, left: left})
	}
}
