package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

const (
	// retainGrace is how long a grant is retained before the engine hears of it. A process that takes the lock again
	// and again within that time sends nothing.
	retainGrace = 10 * time.Millisecond

	// mostRetained is how many grants a client retains; when there are more, the oldest retainedBatch are released
	// together.
	mostRetained, retainedBatch = 1024, 32

	// retainTokens is the size of the block of tokens that a grant brings. Each take-over uses one; after the last one
	// the client asks the engine again.
	retainTokens = 1024
)

// retention is what a client retains. Guarded by Client.mu.
type retention struct {
	grants  map[*grant]*retained // nil until one is retained
	last    retained             // the joint of a ring: next is the oldest, before the latest
	recalls map[queueKey]recalls // of locks that others have recalled lately
}

// retained is one grant that nobody holds.
type retained struct {
	g            *grant
	since, until trust.Instant // LockOptions.Retain of the last hold long
	before, next *retained     // in the ring of retention.last
	news         news          // what the Observer knows of it; nil if nobody listens
}

// recalls counts how often others have recalled a lock. A lock that is recalled repeatedly is not retained for some
// unlocks.
type recalls struct {
	row  uint8 // how often in a row, without a take-over in between; at most 6
	skip uint8 // for how many unlocks it is not retained
}

// mostSkipped bounds the number of those unlocks. mostRecalls bounds the memory: the counts are all forgotten then,
// which costs one recall more for each lock.
const mostSkipped, mostRecalls = 64, 1024

// retain keeps g, which has no holder and no waiter in this process. It reports false if g must be released instead,
// because others have recalled the lock lately. The caller holds Client.mu.
func (g *grant) retain(now trust.Instant) bool {
	c := g.m.c
	if c.retention.skips(g.m) {
		return false
	}
	c.retention.add(g, now)
	// The hold's own renewal may be under way, and its answer would lengthen the lease. The renewal that shortens it
	// does not wait for that answer.
	g.Between, g.NotBefore = true, 0
	c.reschedule(g)
	if len(c.retention.grants) > mostRetained {
		for range retainedBatch {
			c.releaseRetained(c.retention.last.next.g)
		}
	}
	return true
}

// retained returns what is noted of g while it is retained, or nil. The caller holds Client.mu.
func (g *grant) retained() *retained {
	if !g.Between { // as nearly always: no look into the map
		return nil
	}
	return g.m.c.retention.grants[g]
}

// takeOver makes l, which was asked for at the instant asked, a hold on the grant that its client retains. It reports
// false if there is none, or if too little trust is left; in that case it has released the grant. It sends nothing
// otherwise. The caller holds Client.mu.
func (c *core) takeOver(l *Lease, asked trust.Instant) bool {
	if len(c.retention.grants) == 0 {
		return false
	}
	g := c.passing(l.m)
	if g == nil || g.retained() == nil {
		return false
	}
	now := c.now()
	c.expire(g, now)
	if g.Phase == grants.Gone {
		return false
	}
	if !g.MayTakeOver(&c.env, &g.m.p.Terms, now) {
		c.releaseRetained(g)
		return false
	}
	c.retention.remove(g)
	delete(c.retention.recalls, g.m.queueKey())
	g.Between = false
	g.Pass++
	g.admit(l, asked, now, true)
	return true
}

// releaseRetained ends the retention of g and releases it in the background. A grant that is being released is never
// taken over, because drop has removed it from Client.grants. The caller holds Client.mu.
func (c *core) releaseRetained(g *grant) {
	g.drop()
	c.settle(g.m, g.releaseRequest())
}

// endRetentionIfDue releases g if it has been retained for as long as LockOptions.Retain says. It reports whether the
// scheduler is done with g. The caller holds Client.mu.
func (g *grant) endRetentionIfDue(now trust.Instant) bool {
	r := g.retained()
	if r == nil || r.until > now {
		return false
	}
	g.m.c.releaseRetained(g)
	return true
}

// retainedRenewalDue returns when g, which is retained, must be renewed next: after retainGrace for the first time,
// then after half of the short lease. The caller holds Client.mu.
func (g *grant) retainedRenewalDue(r *retained) trust.Instant {
	if g.m.c.hasSessions() {
		return max(g.showingDue(r), g.NotBefore)
	}
	due := r.since.Plus(retainGrace)
	if g.Shortened > r.since {
		due = g.Renewed.Plus(g.m.p.RetainLease() / 2)
	}
	return max(due, g.NotBefore)
}

// add notes that g is retained from now on.
func (s *retention) add(g *grant, now trust.Instant) {
	if s.grants == nil {
		s.grants = make(map[*grant]*retained)
		s.last.next, s.last.before = &s.last, &s.last
	}
	r := &retained{g: g, since: now, until: now.Plus(g.last.m.p.Retain), before: s.last.before, next: &s.last}
	r.before.next, r.next.before = r, r
	s.grants[g] = r
	r.news = g.m.c.shell.retained(g)
}

// forget removes everything about g, which is over. Only a recallable grant can be in here, so the others cost no look.
func (s *retention) forget(g *grant) {
	if g.Recallable {
		s.remove(g)
	}
}

// remove notes that g is no longer retained. It does nothing if it was not.
func (s *retention) remove(g *grant) {
	if r := s.grants[g]; r != nil {
		r.before.next, r.next.before = r.next, r.before
		delete(s.grants, g)
		r.news.end()
	}
}

// recall notes that m was recalled while it was retained. From the second recall in a row on, the next 2, 4, 8 ... 64
// unlocks do not retain the lock: processes that take turns must not pay for retention.
func (s *retention) recall(m *lock) {
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

// skips reports whether m is not to be retained at this unlock, and counts the unlock.
func (s *retention) skips(m *lock) bool {
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
func (c *core) mayRetain() error {
	if reason, lacks := c.traits.Lacking(driver.Recalls); lacks {
		return unsupported(c.traits, reason)
	}
	return nil
}

// showDelay is how long a grant is retained before an engine with sessions shows that. It is longer than retainGrace:
// nobody waits for a lease to end, and each showing is a write.
const showDelay = time.Second

// showingDue returns when the engine is to hear next that g is retained. That is after showDelay, and then each third
// of the session's timeout to learn whether others wait. The caller holds Client.mu.
func (g *grant) showingDue(r *retained) trust.Instant {
	if g.Renewed > r.since {
		return g.Renewed.Plus(g.Window.Lease / 3)
	}
	return r.since.Plus(showDelay)
}

// showed records that the engine shows what b says. An answer that a later take-over has outdated changes nothing. The
// caller holds Client.mu.
func (g *grant) showed(b pendingRenewal) {
	g.hasSucceeded()
	g.Renewed = max(g.Renewed, b.sent)
	g.NotBefore = 0
	if !b.r.Retained && b.r.Pass == int(g.Pass) && g.retained() == nil {
		g.Shown = false
	}
}
