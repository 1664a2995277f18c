package core

import (
	"iter"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// EngineHold is one hold of the engine as this process sees it, from the request for it until it is given back or lost.
// The re-entries of an anonymous owner share one grant, and inside the process it may pass from owner to owner. A named
// owner has a grant for each Lock, because the engine itself counts those.
//
// Machine.Mu guards what may change. There is one grant for each lock that is held, so it is small: 160 bytes.
type EngineHold struct {
	grants.Grant
	Lock  *Lock       // by which it was asked for
	After *EngineHold // in Machine.EngineHolds, of the same listName; nil at the end
	Holds list        // of its owner, OfGrant; with Upgraded all of them, and none only between two owners
	// of a write the hold for which it was granted beside a read, as long as that keeps both; else nil
	Upgraded *Hold
	Last     *Hold // the latest hold while there is none: what events and operators are shown
	Index    int32 // in the scheduler's heap; -1 if it is not there
}

// NewEngineHold returns what the request of that id becomes when the engine grants it.
func (m *Lock) NewEngineHold(id string) *EngineHold {
	return &EngineHold{Grant: grants.Grant{ID: id, Asked: m.Terms.Lease}, Lock: m, Index: -1}
}

// Accept makes g live by the engine's answer a, at the instant now. Grants of one lock form a list, the newest first,
// so that passing and Look find them by name. The caller holds Machine.Mu.
func (g *EngineHold) Accept(a driver.Grant, now trust.Instant) {
	c := g.Lock.Core
	g.Take(&c.Env, a, now)
	g.After = c.EngineHolds[g.listName()]
	c.EngineHolds[g.listName()] = g
}

// Passing returns the grant that waiters for m get without the engine, or nil. There is at most one for a LineKey: a
// second one has alone set. The caller holds Machine.Mu.
func (c *Machine) Passing(m *Lock) *EngineHold {
	for g := c.EngineHolds[m.Key().Name]; g != nil; g = g.After {
		if !g.Alone && g.Lock.LineKey() == m.LineKey() {
			return g
		}
	}
	return nil
}

// AddHold makes l a hold on g. asked is when it was asked for; local says that no request was sent for it. The caller
// holds Machine.Mu.
func (g *EngineHold) AddHold(l *Hold, asked, now trust.Instant, local bool) {
	c, p := g.Lock.Core, l.Lock.Terms
	l.Engine, l.Pass, l.Waited, l.Local = g, g.Pass, now.Since(asked), local
	l.Since, l.End = now, trust.Never
	// Nobody calls Acquired, so the end may be told at once.
	if !c.Hears {
		l.Announced = AnnouncedStart
	}
	if p.NoRenew {
		l.End = g.FixedEnd(&c.Env, l.Since, p.Lease)
	}
	l.End = min(l.End, l.MaxHoldEnd())
	if !c.HasLeases() { // else renewals tell the engine; see RenewalFor
		g.Asked = max(g.Asked, p.Lease)
	}
	if p.MinHold > 0 {
		g.closeUntil(l.Since.Plus(p.MinHold), l)
	}
	g.relabel(l)
	g.Last = nil
	g.Holds.add(OfGrant, l)
	l.Owner.add(l)
	c.Reschedule(g)
}

// Holder returns the oldest hold on g, or the latest one while nobody holds it. The caller holds Machine.Mu.
func (g *EngineHold) Holder() *Hold {
	switch {
	case g.Upgraded != nil:
		return g.Upgraded
	case g.Holds.First != nil:
		return g.Holds.First
	}
	return g.Last
}

// IsHeld reports whether there is a hold on g. The caller holds Machine.Mu.
func (g *EngineHold) IsHeld() bool { return g.Upgraded != nil || g.Holds.First != nil }

// All yields the holds on g, the oldest first. The loop may take out the one that was just yielded, and no other. The
// caller holds Machine.Mu.
func (g *EngineHold) All() iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		if g.Upgraded == nil || yield(g.Upgraded) {
			g.Holds.All(OfGrant)(yield)
		}
	}
}

// drop takes l off g. The caller holds Machine.Mu.
func (g *EngineHold) drop(l *Hold) {
	if g.Upgraded == l {
		g.Upgraded = nil
	} else {
		g.Holds.remove(OfGrant, l)
	}
	if !g.IsHeld() {
		g.Last = l
	}
}

// Renewing reports whether g must be renewed: for a live hold, or for the retention. On engines with sessions only
// what is shown to operators is renewed, because the session keeps the hold. The caller holds Machine.Mu.
func (g *EngineHold) Renewing() bool {
	switch {
	case !g.Lock.Core.Renews:
		return false
	case g.Retained() != nil:
		return true
	case g.Lock.Core.HasSessions():
		return g.Shown
	}
	for l := range g.All() {
		if !l.Lock.Terms.NoRenew || g.isShorterThan(l) {
			return true
		}
	}
	return false
}

// RenewalTerms returns the lease to renew g for and the interval between two renewals. They are the longest lease and
// the shortest interval that any of its holds asks for. Both are 0 if none needs renewal. The caller holds Machine.Mu.
func (g *EngineHold) RenewalTerms() (lease, renewal time.Duration) {
	switch {
	case g.Lock.Core.HasSessions():
		return g.Window.Lease, g.Window.Lease / 3
	case g.Retained() != nil:
		return g.Lock.Terms.RetainLease(), g.Lock.Terms.RetainLease() / 2
	}
	for l := range g.All() {
		p := l.Lock.Terms
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

// ReleaseRequest returns the request that gives g back. Its Horizon is the longest lease that was asked for: so long a
// copy of the acquisition may still take effect.
func (g *EngineHold) ReleaseRequest() *driver.Release {
	return &driver.Release{Key: g.Lock.Key(), ID: g.ID, Horizon: g.Asked}
}

// Forget ends g in this process: it is no longer renewed, passed on or watched. It sends nothing, so the caller
// releases g or leaves it to run out. The caller holds Machine.Mu.
func (g *EngineHold) Forget() {
	c, name := g.Lock.Core, g.listName()
	g.Phase = grants.Gone
	c.unschedule(g)
	delete(c.Cooldowns, g)
	delete(c.Failures, g)
	c.Retention.forget(g)
	if first := c.EngineHolds[name]; first != g {
		for first.After != g {
			first = first.After
		}
		first.After = g.After
	} else if g.After != nil {
		c.EngineHolds[name] = g.After
	} else {
		delete(c.EngineHolds, name)
	}
	g.After = nil
}

// isShorterThan reports whether the engine has given less than the fixed lease of l: a push, which must be claimed
// although l is not renewed.
func (g *EngineHold) isShorterThan(l *Hold) bool {
	return g.Lock.Core.HasLeases() && l.End > g.Window.End()
}

// listName returns the key of g in Machine.EngineHolds. All grants of a mutex share the lock's name. Readers and
// permits go by their id, because they never meet in this process and there may be many of one lock. To drop one would
// otherwise walk all.
func (g *EngineHold) listName() string {
	if g.Lock.Terms.Share.Direct {
		return g.ID
	}
	return g.Lock.Key().Name
}

// TrustEnd returns the end of the trust window of g. The caller holds Machine.Mu.
func (g *EngineHold) TrustEnd() trust.Instant { return g.Deadline(&g.Lock.Core.Env) }

// TrustLeft returns how much of it is left. The caller holds Machine.Mu.
func (g *EngineHold) TrustLeft(now trust.Instant) time.Duration {
	return g.Remaining(&g.Lock.Core.Env, now)
}

// Trusted returns the end of the trust in all that l rests on: an upgraded hold rests on two grants, and ends with the
// first. The caller holds Machine.Mu.
func (l *Hold) Trusted() trust.Instant {
	end := trust.Never
	for g := range l.EngineHolds() {
		end = min(end, g.TrustEnd())
	}
	return end
}

// ExpiredOnArrival reports whether answer is over before anybody got the hold. The caller holds Machine.Mu.
func (c *Machine) ExpiredOnArrival(answer driver.Grant, now trust.Instant) bool {
	return grants.TooLate(&c.Env, answer, now)
}

// list is some leases in the order in which they came. It is linked through the leases themselves: nearly always it has
// one member, for which a slice would cost more than the links. Adding and removing cost the same for any length.
type list struct{ First *Hold }

// links are the neighbours of a lease in one list.
type links struct {
	Next *Hold // nil at the end
	prev *Hold // of the first lease it is the last; nil outside of a list
}

// listKind says which list: a lease is in at most one of each kind, so its links are an array.
type listKind int

const (
	OfGrant   listKind = iota // the live holds on a grant
	ofOwner                   // what an owner has not unlocked yet, lost holds included
	listKinds                 // how many there are
)

// add puts l at the end. l must not be in a list of that kind.
func (s *list) add(by listKind, l *Hold) {
	if s.First == nil {
		s.First, l.Links[by].prev = l, l
		return
	}
	last := s.First.Links[by].prev
	last.Links[by].Next, l.Links[by].prev, s.First.Links[by].prev = l, last, l
}

// remove takes l out. It does nothing if l is in no list of that kind; it must not be in another one.
func (s *list) remove(by listKind, l *Hold) {
	at := &l.Links[by]
	switch {
	case at.prev == nil:
		return
	case s.First == l:
		s.First = at.Next
	default:
		at.prev.Links[by].Next = at.Next
	}
	switch {
	case at.Next != nil:
		at.Next.Links[by].prev = at.prev
	case s.First != nil:
		s.First.Links[by].prev = at.prev // it was the last
	}
	*at = links{}
}

// All yields the members, the oldest first. The loop may take out the one that was just yielded, and no other.
func (s *list) All(by listKind) iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		for l := s.First; l != nil; {
			next := l.Links[by].Next
			if !yield(l) {
				return
			}
			l = next
		}
	}
}

// PendingRelease is a release whose confirmation is awaited. The zero value is none: there is nothing to release.
type PendingRelease struct {
	Engine   *EngineHold   // what is released; nobody holds it any more
	Lock     *Lock         // of the hold that was on it last
	Until    trust.Instant // when the trust window would have ended; see confirmedRelease
	Cooldown time.Duration // how long the engine keeps the lock closed
}

// None reports whether there is nothing to release.
func (w PendingRelease) None() bool { return w.Engine == nil }

// ReleaseRequest is that of the hold, with the cooldown that the engine keeps.
func (w PendingRelease) ReleaseRequest() *driver.Release {
	r := w.Engine.ReleaseRequest()
	r.Keep = w.Cooldown
	return r
}

// EndHold ends the hold and gives the lock to whoever is next: the owner's other holds, the next waiter in this
// process, this client's retention, or the engine. The read is that below an upgraded hold. What it returns must be
// awaited exactly once, after Machine.Mu has been given up, because it is counted as background. The caller holds
// Machine.Mu.
func (l *Hold) EndHold(now trust.Instant) (own, read PendingRelease) {
	l.Release(now)
	if l.Below != nil {
		read = l.Below.leftBy(l, now)
	}
	return l.Engine.leftBy(l, now), read
}

// leftBy is EndHold for g, on which l was. The caller holds Machine.Mu.
func (g *EngineHold) leftBy(l *Hold, now trust.Instant) PendingRelease {
	c := g.Lock.Core
	if g.IsHeld() {
		c.Reschedule(g)
		return PendingRelease{}
	}
	if !g.GoOn(now, grants.Around{CanRetain: !c.Closed}) {
		return PendingRelease{}
	}
	w := PendingRelease{Engine: g, Lock: l.Lock, Until: g.TrustEnd(), Cooldown: g.EngineCooldown()}
	g.Forget()
	c.Background.Add(1) // under Machine.Mu, so that Close waits for what is under way
	// Whoever waits here asks after the release; see confirmLocally.
	if c.Traits.Local {
		return w
	}
	c.AskFor(g.Lock)
	return w
}

// GoOn decides what becomes of g, which nobody holds any more, and does it. It reports true if the caller is to release
// g. The caller holds Machine.Mu.
func (g *EngineHold) GoOn(now trust.Instant, a grants.Around) (release bool) {
	c, q := g.Lock.Core, g.waitingLine()
	// The line goes by the terms of the request, which its waiters share. Retention goes by those of the hold that
	// ended: it may have come by another Mutex of the lock.
	a.CanRetain = a.CanRetain && g.Last.Lock.Terms.Retain > 0
	a.Cooldown, a.Waiting, a.CanRequeue = g.Cooldown(), q != nil, c.Requeues && q != nil && q.Request == nil
	switch g.Next(&c.Env, &g.Lock.Terms.Terms, now, a) {
	case grants.RunOut:
		g.leaveToExpire()
	case grants.KeepClosed:
		g.coolDown()
	case grants.PassOn:
		g.Pass++
		q.Serve(g, true)
	case grants.RenewFirst:
		// Nobody holds g until the renewal is answered. It keeps its place, so that waiters which come meanwhile stand
		// behind it and ask nothing.
		g.Between = true
		c.Emit(Effect{Verb: RenewForHandoff, Engine: g}) // ends with the renewal, which is bounded
	case grants.Requeue:
		g.Forget()
		q.StartRequest(g.ReleaseRequest())
	case grants.Retain:
		return !g.retain(now)
	case grants.GiveBack:
		return true
	}
	return false
}

// GiveBack releases g in the background, and asks anew for the waiters of this process. The caller holds Machine.Mu.
func (g *EngineHold) GiveBack() {
	g.Forget()
	g.Lock.Core.ReleaseInBackground(g.Lock, g.ReleaseRequest())
	g.Lock.Core.AskFor(g.Lock)
}

// waitingLine returns the queue to which g passes on, or nil if nobody waits there or g never passes on. The caller
// holds Machine.Mu.
func (g *EngineHold) waitingLine() *Line {
	q := g.Lock.Core.Lines[g.Lock.LineKey()]
	if g.Alone || q == nil || q.Waiters.First == nil {
		return nil
	}
	return q
}

// ReleaseInBackground releases in the background what the request of g may have left. undo says that its outcome is
// unknown: then the engine also takes away a place in its queue, and refuses late copies of the request. The caller
// holds Machine.Mu.
func (g *EngineHold) ReleaseInBackground(undo bool) {
	give := g.ReleaseRequest()
	give.Undo = undo
	g.Lock.Core.ReleaseInBackground(g.Lock, give)
}

// Decline releases such a hold and does not wait for the engine. The caller holds Machine.Mu.
func (l *Hold) Decline() {
	l.Owner.Remove(l)
	if l.Ended() != nil {
		return
	}
	l.DropMinHold()
	if left, _ := l.EndHold(l.Lock.Core.Now()); !left.None() {
		l.Lock.Core.Emit(Effect{Verb: FinishRelease, Left: left})
	}
}
