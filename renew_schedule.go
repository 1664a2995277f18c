package interlock

import (
	"container/heap"
	"slices"
	"time"
)

// scheduler watches all grants of a client with one goroutine and one timer: it sends their renewals, those due
// together in one batch, and ends them in time. Guarded by Client.mu.
type scheduler struct {
	grants      grantHeap
	armed       instant // when the goroutine wakes next; never if not at all
	timer       *time.Timer
	suspensions int // how many suspensions are taken account of
	batch       int // how many renewals the last batch had: as many are likely to be due together again
}

// mostTogether is how many renewals one batch has at most. A batch is answered, and its memory free, when the last of
// them is: with very many grants that takes seconds, and renewals would come late only because they travel together.
const mostTogether = 1 << 14

// look is when a grant wants to be looked at. The instant stands here and not in the grant, because with very many
// grants what it costs to compare two is to fetch them from memory.
type look struct {
	due instant
	g   *grant
}

// grantHeap orders grants by when they want to be looked at.
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

// Push leaves it to add, which has appended already: to hand a look over in an interface would allocate.
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

// add puts g in.
func (h *grantHeap) add(g *grant, due instant) {
	g.index = int32(len(*h))
	*h = append(*h, look{due, g})
	heap.Push(h, nil) // moves the last to its place
}

// reschedule puts g where its next instant says. The caller holds Client.mu.
func (c *Client) reschedule(g *grant) {
	if g.phase == gone {
		return
	}
	due := g.nextLook()
	s := &c.sched
	switch {
	case due == never:
		c.unschedule(g)
		return
	case g.index < 0:
		s.grants.add(g, due)
	case due != s.grants[g.index].due:
		s.grants[g.index].due = due
		heap.Fix(&s.grants, int(g.index))
	}
	// The timer is only ever set earlier from here. A grant that has left leaves it set, and the goroutine wakes once
	// for nothing: cheaper than waking it for every lock and unlock of an idle client.
	c.wakeBy(due)
}

// wakeBy makes sure that the goroutine looks at that instant. The caller holds Client.mu.
func (c *Client) wakeBy(due instant) {
	if due < c.sched.armed {
		c.arm(due)
	}
}

// arm has the goroutine wake at that instant, without waking it now: that would cost each hand-over more than its other
// work in this process, and the goroutine would want Client.mu while the caller still has it. The caller holds
// Client.mu.
func (c *Client) arm(at instant) {
	s := &c.sched
	s.armed = at
	if at == never {
		s.timer.Stop()
		return
	}
	pause := at.since(c.reading())
	if c.watching {
		pause = min(pause, suspensionCheck)
	}
	s.timer.Reset(pause)
}

// unschedule takes g out. The caller holds Client.mu.
func (c *Client) unschedule(g *grant) {
	if g.index >= 0 {
		heap.Remove(&c.sched.grants, int(g.index))
	}
}

// nextLook is the earliest instant at which something about g is to be done.
func (g *grant) nextLook() instant {
	next := g.deadline()
	for l := range g.holds.all(ofGrant) {
		next = min(next, l.end)
	}
	if g.renewing() {
		next = min(next, g.renewalDue())
	}
	if g.between {
		next = min(next, g.keptUntil())
		if r := g.retained(); r != nil {
			next = min(next, r.until)
		}
	}
	return next
}

// claimDelay is how long a grant that is shorter than asked, which is a push, may go without being claimed: a hold that
// is over by then costs no message for that.
const claimDelay = 5 * time.Millisecond

// renewalDue is when g is to be renewed next: a pause after the last confirmed renewal was sent, soon when the engine
// gave less than was asked for, and in any case after the pause that follows an attempt.
func (g *grant) renewalDue() instant {
	if r := g.retained(); r != nil {
		return g.retainedRenewalDue(r)
	}
	if g.shown {
		return max(g.holder().since.plus(claimDelay), g.notBefore)
	}
	lease, pause := g.wanted()
	due := g.renewed.plus(pause)
	if g.sent.plus(g.lease) < g.renewed.plus(lease) {
		due = g.holder().since.plus(min(claimDelay, g.lease/4))
	}
	if g.mislabelled {
		due = min(due, g.holder().since.plus(relabelDelay))
	}
	return max(due, g.notBefore)
}

// suspensionCheck is how often the scheduler looks while anything is held, although nothing is due: its timer stands
// still with the machine, and holders are to be told soon after it has woken up.
const suspensionCheck = time.Second

// watch is the scheduler's goroutine. It ends with Close.
func (c *Client) watch() {
	defer c.sched.timer.Stop()
	for {
		c.lock()
		now := c.now()
		c.heedSuspensions()
		batch := c.collect(now)
		c.arm(min(c.deadlocks.look(c, now), c.sched.next(now)))
		if len(batch) > 0 {
			c.background.Go(func() { c.renewBatch(batch) })
		}
		c.unlockInside()
		select {
		case <-c.sched.timer.C:
		case <-c.base.Done():
			return
		}
	}
}

// next is when to look again. What it was armed for stays while nothing is held: a client that takes and gives back one
// lock after the other would else wake it for each. The caller holds Client.mu.
func (s *scheduler) next(now instant) instant {
	switch {
	case len(s.grants) > 0:
		return s.grants[0].due
	case s.armed > now:
		return s.armed
	}
	return never
}

// heedSuspensions puts every grant where it belongs after a suspension, which brings all ends nearer. The caller holds
// Client.mu.
func (c *Client) heedSuspensions() {
	if c.sched.suspensions == c.suspensions.count {
		return
	}
	c.sched.suspensions = c.suspensions.count
	for i := range c.sched.grants {
		c.sched.grants[i].due = c.sched.grants[i].g.nextLook()
	}
	heap.Init(&c.sched.grants)
}

// collect ends what is over and returns the renewals to send now. The caller holds Client.mu.
func (c *Client) collect(now instant) []pendingRenewal {
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
		if g.phase == gone || g.between && (g.endCooldown(now) || g.endRetention(now)) {
			continue
		}
		if g.renewable(now) {
			if batch == nil { // with very many holds, to grow step by step would copy megabytes again and again
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
	for _, g := range looked { // put back only now, or a grant that is due again at once would hold the loop
		c.reschedule(g)
	}
	return batch
}

// renewable reports whether g may be renewed now: it is due, or nearly so. The pause after an attempt is always kept.
// The caller holds Client.mu.
func (g *grant) renewable(now instant) bool {
	if !g.renewing() || now < g.notBefore {
		return false
	}
	_, pause := g.wanted()
	return g.renewalDue() <= now.plus(pause/10)
}
