package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Retention: after an Unlock for which nobody waits the client keeps the engine's grant for a while, without an owner.
// A Lock of this client takes it over as a pass inside the process does, with the next token and the trust that is
// left, and no message. Who asks at the engine meanwhile has this client told (Request.Wanted), which gives the grant
// back at once.
//
// A client that dies while it retains keeps others out until the engine ends the lease, for nothing. So a grant that is
// retained for longer than retainGrace gets a short lease (Renewal.Retained), whatever the hold's was. Caching a lock
// until another wants it is as old as Sprite and GPFS; Chubby's clients do so with theirs.

const (
	// retainLease is how long a retained grant lasts in the engine after its last renewal.
	retainLease = 2 * time.Second

	// retainGrace is how long a grant is retained before the engine is told, so that one who takes the lock again and
	// again sends nothing.
	retainGrace = 10 * time.Millisecond

	// mostRetained is how many grants a client retains; retainedBatch of the oldest go when there are more.
	mostRetained, retainedBatch = 1024, 32

	// retainTokens is how often a retained lock is taken over, at most, until the engine is asked for more tokens.
	retainTokens = 1024
)

// retention is what a client retains. Guarded by Client.mu.
type retention struct {
	grants    map[*grant]*retained // nil until there is any
	last      retained             // a ring, of which this is the joint: next is the oldest, before the latest
	recalls   map[queueKey]recalls // of locks that were recalled of late
	shortened map[*grant]instant   // when the lease of those for which it was, was last shortened
}

// retained is one grant that nobody holds.
type retained struct {
	g            *grant
	since, until instant
	before, next *retained
}

// recalls is how a lock fares that others want: it is not retained for a number of unlocks, which doubles.
type recalls struct {
	row  uint8 // how often it was recalled without having been taken over in between
	skip uint8 // how many unlocks are still to go
}

// mostSkipped and mostRecalls bound what recalls cost and what they take: who forgets one retains that lock once more.
const mostSkipped, mostRecalls = 64, 1024

// retain keeps g, which nobody holds any more and for which nobody waits here, instead of giving it back. It reports
// false if that is not to be. The caller holds Client.mu.
func (g *grant) retain(now instant) bool {
	c := g.m.c
	if !g.recallable || g.recalled || g.alone || g.failed || g.phase != live || c.closed {
		return false
	}
	if g.pass+1 >= g.tokens || g.remaining(now) < g.retainLease()/2 || c.retention.skips(g.m) {
		return false
	}
	c.retention.add(g, now)
	g.between, g.notBefore = true, 0 // a renewal of the hold may be under way, which does what that of nobody is to undo
	c.reschedule(g)
	if len(c.retention.grants) > mostRetained {
		for range retainedBatch {
			c.giveBack(c.retention.last.next.g)
		}
	}
	return true
}

// retainLease is the short lease of g while it is retained.
func (g *grant) retainLease() time.Duration { return min(retainLease, g.m.p.lease) }

// retained returns what is noted of g if it is retained, or nil. The caller holds Client.mu.
func (g *grant) retained() *retained {
	if !g.between { // as nearly all: then there is no need to look
		return nil
	}
	return g.m.c.retention.grants[g]
}

// takeOver makes l, which was asked for at the instant asked, a hold on what its client retains of the lock. It reports
// false if there is nothing, or nothing to be trusted: then what there is has been given back, and the engine is to be
// asked. The caller holds Client.mu.
func (c *Client) takeOver(l *Lease, asked instant) bool {
	if len(c.retention.grants) == 0 {
		return false
	}
	g := c.passing(l.m)
	if g == nil || g.retained() == nil {
		return false
	}
	now := c.now()
	c.expire(g, now)
	if g.phase == gone {
		return false
	}
	if g.remaining(now) < g.retainLease()/4 {
		c.giveBack(g)
		return false
	}
	c.retention.remove(g)
	delete(c.retention.recalls, g.m.queueKey())
	g.between = false
	g.pass++
	g.admit(l, asked, now, true)
	return true
}

// giveBack ends the retention of g. The caller holds Client.mu.
func (c *Client) giveBack(g *grant) {
	g.drop()
	c.settle(g.release())
}

// giveBackOf ends the retention of the lock, if there is one. The caller holds Client.mu.
func (c *Client) giveBackOf(m *Mutex) {
	for g := c.grants[m.key.Name]; g != nil; g = g.next {
		if g.m.key == m.key && g.retained() != nil {
			c.giveBack(g)
			return // and g.next is none any more
		}
	}
}

// wantedByOther takes in that another wants the lock of g: it is given back if it is retained, and is not retained otherwise.
func (g *grant) wantedByOther() {
	c := g.m.c
	c.lock()
	defer c.unlockInside()
	if !g.wantedNow {
		for l := range g.holds.all(ofGrant) {
			l.tellWanted()
		}
	}
	g.recalled, g.wantedNow = true, true
	if r := g.retained(); r != nil {
		c.retention.recall(g.m)
		c.giveBack(g)
		c.askFor(g.m)
	}
}

// endRetention gives g back if it was retained for long enough. It reports whether the scheduler is done with it. The
// caller holds Client.mu.
func (g *grant) endRetention(now instant) bool {
	r := g.retained()
	if r == nil || r.until > now {
		return false
	}
	g.m.c.giveBack(g)
	return true
}

// shorten prepares g for a renewal that may shorten the engine's lease: from here on no more is trusted than what such
// a renewal leaves, although it may never arrive, and no answer to an earlier one counts. The caller holds Client.mu.
func (g *grant) shorten(now instant, lease time.Duration) {
	s := &g.m.c.retention
	if s.shortened == nil {
		s.shortened = make(map[*grant]instant)
	}
	s.shortened[g] = now
	if now.plus(lease) < g.sent.plus(g.lease) {
		g.sent, g.lease = now, lease
	}
}

// outdated reports whether an answer to a renewal of g that was sent at that instant says nothing any more: a renewal
// that shortens was sent since. The caller holds Client.mu.
func (g *grant) outdated(sent instant) bool {
	at, is := g.m.c.retention.shortened[g]
	return is && sent < at
}

// retainedRenewalDue is when g, which is retained, is to be renewed next. The caller holds Client.mu.
func (g *grant) retainedRenewalDue(r *retained) instant {
	due := r.since.plus(retainGrace)
	if at, is := g.m.c.retention.shortened[g]; is && at > r.since {
		due = g.renewed.plus(g.retainLease() / 3)
	}
	return max(due, g.notBefore)
}

// add notes that g is retained from now on.
func (s *retention) add(g *grant, now instant) {
	if s.grants == nil {
		s.grants = make(map[*grant]*retained)
		s.last.next, s.last.before = &s.last, &s.last
	}
	r := &retained{g: g, since: now, until: now.plus(g.m.p.retain), before: s.last.before, next: &s.last}
	r.before.next, r.next.before = r, r
	s.grants[g] = r
}

// forget is for a g that is over.
func (s *retention) forget(g *grant) {
	if g.recallable {
		s.remove(g)
		delete(s.shortened, g)
	}
}

// remove forgets that g is retained, if it is.
func (s *retention) remove(g *grant) {
	if r := s.grants[g]; r != nil {
		r.before.next, r.next.before = r.next, r.before
		delete(s.grants, g)
	}
}

// recall notes that m was recalled while it was retained. From the second time in a row on the lock is not retained for
// 2, 4, 8 ... unlocks: processes that take turns must not pay for it.
func (s *retention) recall(m *Mutex) {
	at := m.queueKey()
	r := s.recalls[at]
	switch {
	case s.recalls == nil || len(s.recalls) >= mostRecalls:
		s.recalls = make(map[queueKey]recalls)
	case r.row > 0:
		r.skip = uint8(min(1<<r.row, mostSkipped))
	}
	r.row = min(r.row+1, 6)
	s.recalls[at] = r
}

// skips reports whether m is not to be retained at this unlock.
func (s *retention) skips(m *Mutex) bool {
	if len(s.recalls) == 0 {
		return false
	}
	at := m.queueKey()
	r := s.recalls[at]
	if r.skip == 0 {
		return false
	}
	r.skip--
	s.recalls[at] = r
	return true
}

// mayRetain says why locks of this engine cannot be retained, or nil.
func (c *Client) mayRetain() error {
	if reason, lacks := c.traits.Lacking(driver.Recalls); lacks {
		return unsupported(c.traits, reason)
	}
	return nil
}
