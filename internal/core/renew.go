package core

import (
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// PendingRenewal is one renewal of one grant under way.
type PendingRenewal struct {
	engine  *EngineHold
	sent    trust.Instant // before the request was sent: the new trust window starts here
	Renewal driver.Renewal
}

// Renewal prepares a renewal of g that is due, and keeps the scheduler from sending another before this one has had
// time to be answered. The caller holds Machine.Mu.
func (g *EngineHold) Renewal(now trust.Instant) PendingRenewal {
	lease, _ := g.RenewalTerms()
	g.NotBefore = now.Plus(g.patience())
	switch {
	// A live hold: nothing but the request.
	case g.Retained() == nil:
	case g.Lock.Core.HasSessions():
		g.Shown = true
	default:
		g.Shorten(now, lease)
	}
	return g.RenewalFor(lease, now)
}

// RenewalFor prepares a renewal of g for that lease. It may take effect although it is never answered. So from now on
// everything that g may leave in the engine is taken to last as long (EngineHold.Asked). The caller holds Machine.Mu.
func (g *EngineHold) RenewalFor(lease time.Duration, now trust.Instant) PendingRenewal {
	g.Asked = max(g.Asked, lease)
	l := g.Holder()
	r := driver.Renewal{
		Key: g.Lock.Key(), ID: g.ID, Lease: lease, Owner: l.Owner.ID, Pass: int(g.Pass), Label: l.Lock.Terms.Label,
	}
	// The label of an election is the leader's value: that of the campaign, whoever of its owner shares the term.
	if r.Kind == driver.KindElection {
		r.Label = g.Lock.Terms.Label
	}
	if g.Retained() != nil {
		r.Retained, r.Owner, r.Label = true, "", ""
	}
	return PendingRenewal{engine: g, sent: now, Renewal: r}
}

// patience is how long a renewal may go unanswered before the next one is sent: half of the interval. There is no
// number of retries; renewals go on until the trust window ends.
func (g *EngineHold) patience() time.Duration {
	_, pause := g.RenewalTerms()
	return pause / 2
}

// retryIn returns the pause after a renewal that failed outright: a tenth of what is left of the window. The tries come
// closer together as the end does, but never closer than minRetry.
func (g *EngineHold) retryIn(now trust.Instant) time.Duration {
	_, pause := g.RenewalTerms()
	return min(max(g.TrustLeft(now)/10, minRetry), pause/2)
}

const minRetry = 5 * time.Millisecond

// Renewed processes the answer to one renewal, and returns the error for a caller that waits for it. The caller holds
// Machine.Mu.
func (c *Machine) Renewed(b PendingRenewal, err error) error {
	g, now := b.engine, c.Now()
	c.Expire(g, now) // an answer that comes after the end does not revive it
	if g.Phase == grants.Gone {
		return g.GoneError()
	}
	switch {
	// The session keeps the hold; this only showed operators something.
	case err == nil && c.HasSessions():
		g.showed(b)
	case err == nil:
		left, lease := g.TrustLeft(now), g.Window.Lease
		g.hasSucceeded()
		g.Confirm(b.sent, b.Renewal.Lease)
		g.NotBefore = 0
		g.Mislabelled = g.Mislabelled && b.Renewal.Pass != int(g.Pass)
		c.Shell.RenewalConfirmed(g, left, lease)
	// The engine says that the hold is gone.
	case errors.Is(err, driver.ErrLost):
		reason, cause := driver.LostExpired, error(nil)
		var told *driver.LostError
		if errors.As(err, &told) {
			reason, cause = told.Reason, told.Cause
		}
		c.Lose(g, reason, cause)
		return g.GoneError()
	// Nobody holds it, so a grant in doubt is released at once.
	case g.Retained() != nil:
		c.ReleaseRetained(g)
		return err
	// No answer, or an error: the window that was confirmed before still counts, and the next try comes soon.
	default:
		again := g.Failed
		g.hasFailed(err)
		if g.IsHeld() {
			g.NotBefore = min(g.NotBefore, now.Plus(g.retryIn(now)))
		}
		left := g.TrustLeft(now)
		c.Shell.RenewalFailed(g, left, again, err)
	}
	c.Reschedule(g)
	return err
}

// scheduler watches all grants of a client with one goroutine and one timer. It sends their renewals, those due
// together in one batch, and ends them in time. Guarded by Machine.Mu.
type scheduler struct {
	Due         grantHeap     // those with something to do, the earliest first
	Armed       trust.Instant // when the goroutine wakes next; never if no timer is set
	Timer       *time.Timer   // set by arm alone
	suspensions int           // how many suspensions the instants in grants take account of
	batch       int           // the size of the last batch: as many are likely to be due together again
}

// MostTogether is how many renewals one batch has at most. A batch is answered, and its memory free, when the last of
// them is. With very many grants that takes seconds, and renewals would come late only because they travel together.
const MostTogether = 1 << 14

// look is when a grant wants to be looked at. The instant stands here and not in the grant: with very many grants a
// comparison would cost two fetches from memory.
type look struct {
	due    trust.Instant
	engine *EngineHold
}

// grantHeap orders grants by when they want to be looked at. Each grant knows its index, so that it can be moved and
// removed.
type grantHeap []look

// Len is for package heap.
func (h grantHeap) Len() int { return len(h) }

// Less is for package heap.
func (h grantHeap) Less(i, j int) bool { return h[i].due < h[j].due }

// Swap is for package heap.
func (h grantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].engine.Index, h[j].engine.Index = int32(i), int32(j)
}

// Push is empty: add has appended already, because handing a look over in an interface would allocate.
func (h *grantHeap) Push(any) {}

// Pop is for package heap.
func (h *grantHeap) Pop() any {
	old := *h
	g := old[len(old)-1].engine
	old[len(old)-1] = look{}
	*h = old[:len(old)-1]
	g.Index = -1
	return g
}

// add puts g in, to be looked at when due.
func (h *grantHeap) add(g *EngineHold, due trust.Instant) {
	g.Index = int32(len(*h))
	*h = append(*h, look{due, g})
	heap.Push(h, nil) // moves the last to its place
}

// Reschedule puts g where its next instant says, or takes it out if nothing is due. It is called whenever something
// changes that nextLook reads. The caller holds Machine.Mu.
func (c *Machine) Reschedule(g *EngineHold) {
	if g.Phase == grants.Gone {
		return
	}
	due := g.nextLook()
	s := &c.Scheduler
	switch {
	case due == trust.Never:
		c.unschedule(g)
		return
	case g.Index < 0:
		s.Due.add(g, due)
	case due != s.Due[g.Index].due:
		s.Due[g.Index].due = due
		heap.Fix(&s.Due, int(g.Index))
	}
	// The timer is only ever set earlier from here. A grant that has left leaves it set, and the goroutine wakes once
	// for nothing. That is cheaper than waking it for every lock and unlock of an idle client.
	c.WakeBy(due)
}

// WakeBy makes sure that the goroutine looks at that instant, or earlier. The caller holds Machine.Mu.
func (c *Machine) WakeBy(due trust.Instant) {
	if due < c.Scheduler.Armed {
		c.Shell.Arm(due)
	}
}

// unschedule takes g out, if it is in. The caller holds Machine.Mu.
func (c *Machine) unschedule(g *EngineHold) {
	if g.Index >= 0 {
		heap.Remove(&c.Scheduler.Due, int(g.Index))
	}
}

// nextLook returns the earliest instant at which something about g must be done. Its trust or a hold ends then, or a
// renewal, a cooldown or a retention is due. The caller holds Machine.Mu.
func (g *EngineHold) nextLook() trust.Instant {
	next := g.TrustEnd()
	for l := range g.All() {
		next = min(next, l.End)
	}
	if g.Renewing() {
		next = min(next, g.renewalDue())
	}
	if g.Between {
		next = min(next, g.CooldownEnd())
		if r := g.Retained(); r != nil {
			next = min(next, r.until)
		}
	}
	return next
}

// ClaimDelay is how long a grant that is shorter than asked, which is a push, may go without being claimed. A hold
// that is over by then costs no message for that; see docs/rationale.md, Pushed grants.
const ClaimDelay = 5 * time.Millisecond

// renewalDue returns when g must be renewed next. That is one interval after the last confirmed renewal was sent. It
// comes sooner if the engine gave less than was asked for or shows another call's label. It is never before notBefore,
// which is the pause after an attempt. The caller holds Machine.Mu.
func (g *EngineHold) renewalDue() trust.Instant {
	if r := g.Retained(); r != nil {
		return g.retainedRenewalDue(r)
	}
	if g.Shown {
		return max(g.Holder().Since.Plus(ClaimDelay), g.NotBefore)
	}
	lease, pause := g.RenewalTerms()
	due := g.Renewed.Plus(pause)
	if g.Window.Over() < g.Renewed.Plus(lease) {
		due = g.Holder().Since.Plus(min(ClaimDelay, g.Window.Lease/4))
	}
	if g.Mislabelled {
		due = min(due, g.Holder().Since.Plus(RelabelDelay))
	}
	return max(due, g.NotBefore)
}

// SuspensionCheck is how often the scheduler looks while anything is held, although nothing is due. Holders are to
// learn of a suspension soon after the machine has woken up.
const SuspensionCheck = time.Second

// Next returns when to look again. While nothing is held the timer stays as it was set. Otherwise a client that takes
// and releases one lock after the other would set and wake it for each. The caller holds Machine.Mu.
func (s *scheduler) Next(now trust.Instant) trust.Instant {
	switch {
	case len(s.Due) > 0:
		return s.Due[0].due
	case s.Armed > now:
		return s.Armed
	}
	return trust.Never
}

// HeedSuspensions computes all instants anew after a suspension. It costs as much as there are grants, and suspensions
// are rare. The caller holds Machine.Mu.
func (c *Machine) HeedSuspensions() {
	if c.Scheduler.suspensions == c.Env.Suspensions.Count() {
		return
	}
	c.Scheduler.suspensions = c.Env.Suspensions.Count()
	for i := range c.Scheduler.Due {
		c.Scheduler.Due[i].due = c.Scheduler.Due[i].engine.nextLook()
	}
	heap.Init(&c.Scheduler.Due)
}

// Collect ends what is over and returns the renewals to send now, at most mostTogether. Grants that are nearly due
// travel along: one batch costs one round trip for each shard, however many it has. The caller holds Machine.Mu.
func (c *Machine) Collect(now trust.Instant) []PendingRenewal {
	var looked []*EngineHold
	var batch []PendingRenewal
	for len(c.Scheduler.Due) > 0 && len(batch) < MostTogether {
		g := c.Scheduler.Due[0].engine
		early := len(batch) > 0 && g.renewable(now) // it travels with those that are due
		if c.Scheduler.Due[0].due > now && !early {
			break
		}
		heap.Pop(&c.Scheduler.Due)
		c.Expire(g, now)
		if g.Phase == grants.Gone || g.Between && (g.endCooldown(now) || g.endRetentionIfDue(now)) {
			continue
		}
		if g.renewable(now) {
			// With very many holds, growing step by step would copy megabytes again and again.
			if batch == nil {
				room := min(c.Scheduler.batch, len(c.Scheduler.Due)) + 1
				batch, looked = make([]PendingRenewal, 0, room), slices.Grow(looked, room)
			}
			batch = append(batch, g.Renewal(now))
		}
		looked = append(looked, g)
	}
	if len(batch) > 0 {
		c.Scheduler.batch = len(batch)
	}
	// Put back only now: a grant that is due again at once would keep the loop going.
	for _, g := range looked {
		c.Reschedule(g)
	}
	return batch
}

// renewable reports whether g may be renewed now: it is due, or will be within a tenth of its interval. The pause after
// an attempt is always kept. The caller holds Machine.Mu.
func (g *EngineHold) renewable(now trust.Instant) bool {
	if !g.Renewing() || now < g.NotBefore {
		return false
	}
	_, pause := g.RenewalTerms()
	return g.renewalDue() <= now.Plus(pause/10)
}
