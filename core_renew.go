package interlock

import (
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// pendingRenewal is one renewal of one grant under way.
type pendingRenewal struct {
	g    *grant
	sent trust.Instant // before the request was sent: the new trust window starts here
	r    driver.Renewal
}

// renewal prepares a renewal of g that is due, and keeps the scheduler from sending another before this one has had
// time to be answered. The caller holds Client.mu.
func (g *grant) renewal(now trust.Instant) pendingRenewal {
	lease, _ := g.renewalTerms()
	g.NotBefore = now.Plus(g.patience())
	switch {
	// A live hold: nothing but the request.
	case g.retained() == nil:
	case g.m.c.hasSessions():
		g.Shown = true
	default:
		g.Shorten(now, lease)
	}
	return g.renewalFor(lease, now)
}

// renewalFor prepares a renewal of g for that lease. It may take effect although it is never answered. So from now on
// everything that g may leave in the engine is taken to last as long (grant.asked). The caller holds Client.mu.
func (g *grant) renewalFor(lease time.Duration, now trust.Instant) pendingRenewal {
	g.Asked = max(g.Asked, lease)
	l := g.holder()
	r := driver.Renewal{
		Key: g.m.key(), ID: g.ID, Lease: lease, Owner: l.owner.id, Pass: int(g.Pass), Label: l.m.p.label,
	}
	// The label of an election is the leader's value: that of the campaign, whoever of its owner shares the term.
	if r.Kind == driver.KindElection {
		r.Label = g.m.p.label
	}
	if g.retained() != nil {
		r.Retained, r.Owner, r.Label = true, "", ""
	}
	return pendingRenewal{g: g, sent: now, r: r}
}

// patience is how long a renewal may go unanswered before the next one is sent: half of the interval. There is no
// number of retries; renewals go on until the trust window ends.
func (g *grant) patience() time.Duration {
	_, pause := g.renewalTerms()
	return pause / 2
}

// retryIn returns the pause after a renewal that failed outright: a tenth of what is left of the window. The tries come
// closer together as the end does, but never closer than minRetry.
func (g *grant) retryIn(now trust.Instant) time.Duration {
	_, pause := g.renewalTerms()
	return min(max(g.remaining(now)/10, minRetry), pause/2)
}

const minRetry = 5 * time.Millisecond

// renewed processes the answer to one renewal, and returns the error for a caller that waits for it. The caller holds
// Client.mu.
func (c *core) renewed(b pendingRenewal, err error) error {
	g, now := b.g, c.now()
	c.expire(g, now) // an answer that comes after the end does not revive it
	if g.Phase == grants.Gone {
		return g.goneError()
	}
	switch {
	// The session keeps the hold; this only showed operators something.
	case err == nil && c.hasSessions():
		g.showed(b)
	case err == nil:
		left, lease := g.remaining(now), g.Window.Lease
		g.hasSucceeded()
		g.Confirm(b.sent, b.r.Lease)
		g.NotBefore = 0
		g.Mislabelled = g.Mislabelled && b.r.Pass != int(g.Pass)
		c.shell.renewalConfirmed(g, left, lease)
	// The engine says that the hold is gone.
	case errors.Is(err, ErrLost):
		reason, cause := driver.LostExpired, error(nil)
		var told *LostError
		if errors.As(err, &told) {
			reason, cause = told.Reason, told.Cause
		}
		c.lose(g, reason, cause)
		return g.goneError()
	// Nobody holds it, so a grant in doubt is released at once.
	case g.retained() != nil:
		c.releaseRetained(g)
		return err
	// No answer, or an error: the window that was confirmed before still counts, and the next try comes soon.
	default:
		again := g.Failed
		g.hasFailed(err)
		if g.holds.first != nil {
			g.NotBefore = min(g.NotBefore, now.Plus(g.retryIn(now)))
		}
		left := g.remaining(now)
		c.shell.renewalFailed(g, left, again, err)
	}
	c.reschedule(g)
	return err
}

// scheduler watches all grants of a client with one goroutine and one timer. It sends their renewals, those due
// together in one batch, and ends them in time. Guarded by Client.mu.
type scheduler struct {
	grants      grantHeap     // those with something to do, the earliest first
	armed       trust.Instant // when the goroutine wakes next; never if no timer is set
	timer       *time.Timer   // set by arm alone
	suspensions int           // how many suspensions the instants in grants take account of
	batch       int           // the size of the last batch: as many are likely to be due together again
}

// mostTogether is how many renewals one batch has at most. A batch is answered, and its memory free, when the last of
// them is. With very many grants that takes seconds, and renewals would come late only because they travel together.
const mostTogether = 1 << 14

// look is when a grant wants to be looked at. The instant stands here and not in the grant: with very many grants a
// comparison would cost two fetches from memory.
type look struct {
	due trust.Instant
	g   *grant
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
	h[i].g.index, h[j].g.index = int32(i), int32(j)
}

// Push is empty: add has appended already, because handing a look over in an interface would allocate.
func (h *grantHeap) Push(any) {}

// Pop is for package heap.
func (h *grantHeap) Pop() any {
	old := *h
	g := old[len(old)-1].g
	old[len(old)-1] = look{}
	*h = old[:len(old)-1]
	g.index = -1
	return g
}

// add puts g in, to be looked at when due.
func (h *grantHeap) add(g *grant, due trust.Instant) {
	g.index = int32(len(*h))
	*h = append(*h, look{due, g})
	heap.Push(h, nil) // moves the last to its place
}

// reschedule puts g where its next instant says, or takes it out if nothing is due. It is called whenever something
// changes that nextLook reads. The caller holds Client.mu.
func (c *core) reschedule(g *grant) {
	if g.Phase == grants.Gone {
		return
	}
	due := g.nextLook()
	s := &c.sched
	switch {
	case due == trust.Never:
		c.unschedule(g)
		return
	case g.index < 0:
		s.grants.add(g, due)
	case due != s.grants[g.index].due:
		s.grants[g.index].due = due
		heap.Fix(&s.grants, int(g.index))
	}
	// The timer is only ever set earlier from here. A grant that has left leaves it set, and the goroutine wakes once
	// for nothing. That is cheaper than waking it for every lock and unlock of an idle client.
	c.wakeBy(due)
}

// wakeBy makes sure that the goroutine looks at that instant, or earlier. The caller holds Client.mu.
func (c *core) wakeBy(due trust.Instant) {
	if due < c.sched.armed {
		c.shell.arm(due)
	}
}

// unschedule takes g out, if it is in. The caller holds Client.mu.
func (c *core) unschedule(g *grant) {
	if g.index >= 0 {
		heap.Remove(&c.sched.grants, int(g.index))
	}
}

// nextLook returns the earliest instant at which something about g must be done. Its trust or a hold ends then, or a
// renewal, a cooldown or a retention is due. The caller holds Client.mu.
func (g *grant) nextLook() trust.Instant {
	next := g.deadline()
	for l := range g.holds.all(ofGrant) {
		next = min(next, l.end)
	}
	if g.renewing() {
		next = min(next, g.renewalDue())
	}
	if g.Between {
		next = min(next, g.keptUntil())
		if r := g.retained(); r != nil {
			next = min(next, r.until)
		}
	}
	return next
}

// claimDelay is how long a grant that is shorter than asked, which is a push, may go without being claimed. A hold
// that is over by then costs no message for that; see docs/adr/0016.
const claimDelay = 5 * time.Millisecond

// renewalDue returns when g must be renewed next. That is one interval after the last confirmed renewal was sent. It
// comes sooner if the engine gave less than was asked for or shows another call's label. It is never before notBefore,
// which is the pause after an attempt. The caller holds Client.mu.
func (g *grant) renewalDue() trust.Instant {
	if r := g.retained(); r != nil {
		return g.retainedRenewalDue(r)
	}
	if g.Shown {
		return max(g.holder().since.Plus(claimDelay), g.NotBefore)
	}
	lease, pause := g.renewalTerms()
	due := g.Renewed.Plus(pause)
	if g.Window.Over() < g.Renewed.Plus(lease) {
		due = g.holder().since.Plus(min(claimDelay, g.Window.Lease/4))
	}
	if g.Mislabelled {
		due = min(due, g.holder().since.Plus(relabelDelay))
	}
	return max(due, g.NotBefore)
}

// suspensionCheck is how often the scheduler looks while anything is held, although nothing is due. Holders are to
// learn of a suspension soon after the machine has woken up.
const suspensionCheck = time.Second

// next returns when to look again. While nothing is held the timer stays as it was set. Otherwise a client that takes
// and releases one lock after the other would set and wake it for each. The caller holds Client.mu.
func (s *scheduler) next(now trust.Instant) trust.Instant {
	switch {
	case len(s.grants) > 0:
		return s.grants[0].due
	case s.armed > now:
		return s.armed
	}
	return trust.Never
}

// heedSuspensions computes all instants anew after a suspension. It costs as much as there are grants, and suspensions
// are rare. The caller holds Client.mu.
func (c *core) heedSuspensions() {
	if c.sched.suspensions == c.env.Suspensions.Count() {
		return
	}
	c.sched.suspensions = c.env.Suspensions.Count()
	for i := range c.sched.grants {
		c.sched.grants[i].due = c.sched.grants[i].g.nextLook()
	}
	heap.Init(&c.sched.grants)
}

// collect ends what is over and returns the renewals to send now, at most mostTogether. Grants that are nearly due
// travel along: one batch costs one round trip for each shard, however many it has. The caller holds Client.mu.
func (c *core) collect(now trust.Instant) []pendingRenewal {
	var looked []*grant
	var batch []pendingRenewal
	for len(c.sched.grants) > 0 && len(batch) < mostTogether {
		g := c.sched.grants[0].g
		early := len(batch) > 0 && g.renewable(now) // it travels with those that are due
		if c.sched.grants[0].due > now && !early {
			break
		}
		heap.Pop(&c.sched.grants)
		c.expire(g, now)
		if g.Phase == grants.Gone || g.Between && (g.endCooldown(now) || g.endRetentionIfDue(now)) {
			continue
		}
		if g.renewable(now) {
			// With very many holds, growing step by step would copy megabytes again and again.
			if batch == nil {
				room := min(c.sched.batch, len(c.sched.grants)) + 1
				batch, looked = make([]pendingRenewal, 0, room), slices.Grow(looked, room)
			}
			batch = append(batch, g.renewal(now))
		}
		looked = append(looked, g)
	}
	if len(batch) > 0 {
		c.sched.batch = len(batch)
	}
	// Put back only now: a grant that is due again at once would keep the loop going.
	for _, g := range looked {
		c.reschedule(g)
	}
	return batch
}

// renewable reports whether g may be renewed now: it is due, or will be within a tenth of its interval. The pause after
// an attempt is always kept. The caller holds Client.mu.
func (g *grant) renewable(now trust.Instant) bool {
	if !g.renewing() || now < g.NotBefore {
		return false
	}
	_, pause := g.renewalTerms()
	return g.renewalDue() <= now.Plus(pause/10)
}
