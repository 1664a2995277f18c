package core

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

const (
	// RetainGrace is how long a grant is retained before the engine hears of it. A process that takes the lock again
	// and again within that time sends nothing.
	RetainGrace = 10 * time.Millisecond

	// MostRetained is how many grants a client retains; when there are more, the oldest RetainedBatch are released
	// together.
	MostRetained = 1024

	// RetainedBatch is how many these are.
	RetainedBatch = 32

	// RetainTokens is the size of the block of tokens that a grant brings. Each take-over uses one; after the last one
	// the client asks the engine again.
	RetainTokens = 1024
)

// retention is what a client retains. Guarded by Machine.Mu.
type retention struct {
	Kept    map[*EngineHold]*RetainedHold // nil until one is retained
	last    RetainedHold                  // the joint of a ring: next is the oldest, before the latest
	recalls map[LineKey]recalls           // of locks that others have recalled lately
}

// RetainedHold is one grant that nobody holds.
type RetainedHold struct {
	engine       *EngineHold
	since, until trust.Instant // LockOptions.Retain of the last hold long
	before, next *RetainedHold // in the ring of retention.last
	news         News          // what the Observer knows of it; nil if nobody listens
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
// because others have recalled the lock lately. The caller holds Machine.Mu.
func (g *EngineHold) retain(now trust.Instant) bool {
	c := g.Lock.Core
	if c.Retention.skips(g.Lock) {
		return false
	}
	c.Retention.add(g, now)
	// The hold's own renewal may be under way, and its answer would lengthen the lease. The renewal that shortens it
	// does not wait for that answer.
	g.Between, g.NotBefore = true, 0
	c.Reschedule(g)
	if len(c.Retention.Kept) > MostRetained {
		for range RetainedBatch {
			c.ReleaseRetained(c.Retention.last.next.engine)
		}
	}
	return true
}

// Retained returns what is noted of g while it is retained, or nil. The caller holds Machine.Mu.
func (g *EngineHold) Retained() *RetainedHold {
	if !g.Between { // as nearly always: no look into the map
		return nil
	}
	return g.Lock.Core.Retention.Kept[g]
}

// TakeOver makes l, which was asked for at the instant asked, a hold on the grant that its client retains. It reports
// false if there is none, or if too little trust is left; in that case it has released the grant. It sends nothing
// otherwise. The caller holds Machine.Mu.
func (c *Machine) TakeOver(l *Hold, asked trust.Instant) bool {
	if len(c.Retention.Kept) == 0 {
		return false
	}
	g := c.Passing(l.Lock)
	if g == nil || g.Retained() == nil {
		return false
	}
	now := c.Now()
	c.Expire(g, now)
	if g.Phase == grants.Gone {
		return false
	}
	if !g.MayTakeOver(&c.Env, &g.Lock.Terms.Terms, now) {
		c.ReleaseRetained(g)
		return false
	}
	c.Retention.remove(g)
	delete(c.Retention.recalls, g.Lock.LineKey())
	g.Between = false
	g.Pass++
	g.AddHold(l, asked, now, true)
	return true
}

// ReleaseRetained ends the retention of g and releases it in the background. A grant that is being released is never
// taken over, because drop has removed it from Machine.EngineHolds. The caller holds Machine.Mu.
func (c *Machine) ReleaseRetained(g *EngineHold) {
	g.Forget()
	c.ReleaseInBackground(g.Lock, g.ReleaseRequest())
}

// endRetentionIfDue releases g if it has been retained for as long as LockOptions.Retain says. It reports whether the
// scheduler is done with g. The caller holds Machine.Mu.
func (g *EngineHold) endRetentionIfDue(now trust.Instant) bool {
	r := g.Retained()
	if r == nil || r.until > now {
		return false
	}
	g.Lock.Core.ReleaseRetained(g)
	return true
}

// retainedRenewalDue returns when g, which is retained, must be renewed next: after RetainGrace for the first time,
// then after half of the short lease. The caller holds Machine.Mu.
func (g *EngineHold) retainedRenewalDue(r *RetainedHold) trust.Instant {
	if g.Lock.Core.HasSessions() {
		return max(g.showingDue(r), g.NotBefore)
	}
	due := r.since.Plus(RetainGrace)
	if g.Shortened > r.since {
		due = g.Renewed.Plus(g.Lock.Terms.RetainLease() / 2)
	}
	return max(due, g.NotBefore)
}

// add notes that g is retained from now on.
func (s *retention) add(g *EngineHold, now trust.Instant) {
	if s.Kept == nil {
		s.Kept = make(map[*EngineHold]*RetainedHold)
		s.last.next, s.last.before = &s.last, &s.last
	}
	until := now.Plus(g.Last.Lock.Terms.Retain)
	r := &RetainedHold{engine: g, since: now, until: until, before: s.last.before, next: &s.last}
	r.before.next, r.next.before = r, r
	s.Kept[g] = r
	r.news = g.Lock.Core.Shell.Retained(g)
}

// forget removes everything about g, which is over. Only a recallable grant can be in here, so the others cost no look.
func (s *retention) forget(g *EngineHold) {
	if g.Recallable {
		s.remove(g)
	}
}

// remove notes that g is no longer retained. It does nothing if it was not.
func (s *retention) remove(g *EngineHold) {
	if r := s.Kept[g]; r != nil {
		r.before.next, r.next.before = r.next, r.before
		delete(s.Kept, g)
		r.news.End()
	}
}

// Recall notes that m was recalled while it was retained. From the second recall in a row on, the next 2, 4, 8 ... 64
// unlocks do not retain the lock: processes that take turns must not pay for retention.
func (s *retention) Recall(m *Lock) {
	at := m.LineKey()
	r := s.recalls[at]
	switch {
	case s.recalls == nil || len(s.recalls) >= mostRecalls:
		s.recalls = make(map[LineKey]recalls)
	case r.row > 0:
		r.skip = uint8(min(1<<r.row, mostSkipped))
	}
	r.row = min(r.row+1, 6)
	s.recalls[at] = r
}

// skips reports whether m is not to be retained at this unlock, and counts the unlock.
func (s *retention) skips(m *Lock) bool {
	if len(s.recalls) == 0 {
		return false
	}
	at := m.LineKey()
	r := s.recalls[at]
	if r.skip == 0 {
		return false
	}
	r.skip--
	s.recalls[at] = r
	return true
}

// MayRetain says why locks of this engine cannot be retained, or nil.
func (c *Machine) MayRetain() error {
	if reason, lacks := c.Traits.Lacking(driver.Recalls); lacks {
		return Unsupported(c.Traits, reason)
	}
	return nil
}

// ShowDelay is how long a grant is retained before an engine with sessions shows that. It is longer than RetainGrace:
// nobody waits for a lease to end, and each showing is a write.
const ShowDelay = time.Second

// showingDue returns when the engine is to hear next that g is retained. That is after ShowDelay, and then each third
// of the session's timeout to learn whether others wait. The caller holds Machine.Mu.
func (g *EngineHold) showingDue(r *RetainedHold) trust.Instant {
	if g.Renewed > r.since {
		return g.Renewed.Plus(g.Window.Lease / 3)
	}
	return r.since.Plus(ShowDelay)
}

// showed records that the engine shows what b says. An answer that a later take-over has outdated changes nothing. The
// caller holds Machine.Mu.
func (g *EngineHold) showed(b PendingRenewal) {
	g.hasSucceeded()
	g.Renewed = max(g.Renewed, b.sent)
	g.NotBefore = 0
	if !b.Renewal.Retained && b.Renewal.Pass == int(g.Pass) && g.Retained() == nil {
		g.Shown = false
	}
}
