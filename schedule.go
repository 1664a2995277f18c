package interlock

import (
	"container/heap"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// scheduler watches all grants of a client with one goroutine and one timer: it sends their renewals, those due together
// in one batch, and ends them in time. Guarded by Client.mu.
type scheduler struct {
	grants grantHeap
	armed  instant       // when the goroutine wakes next by itself; never if not at all
	wake   chan struct{} // wakes it earlier; buffered for one
	naps   int           // suspensions taken account of
	batch  int           // how many renewals the last batch had: as many are likely to be due together again
}

// look is when a grant wants to be looked at. The instant stands here and not in the grant, because with very many grants
// what it costs to compare two is to fetch them from memory.
type look struct {
	due instant
	g   *grant
}

// grantHeap orders grants by when they want to be looked at.
type grantHeap []look

func (h grantHeap) Len() int           { return len(h) }
func (h grantHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h grantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].g.index, h[j].g.index = int32(i), int32(j)
}

// Push leaves it to add, which has appended already: to hand a look over in an interface would allocate.
func (h *grantHeap) Push(any) {}

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
	// The timer is only ever set earlier from here. A grant that has left leaves it set, and the goroutine wakes once for
	// nothing: cheaper than waking it for every lock and unlock of an idle client.
	c.wakeBy(due)
}

// wakeBy makes sure that the goroutine looks at that instant. The caller holds Client.mu.
func (c *Client) wakeBy(due instant) {
	s := &c.sched
	if due >= s.armed {
		return
	}
	s.armed = due
	select {
	case s.wake <- struct{}{}:
	default: // it has been woken already and will see this
	}
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
	if g.m.c.renewer != nil && g.renewing() {
		next = min(next, g.renewalDue())
	}
	if g.between {
		next = min(next, g.stays())
	}
	return next
}

// claimDelay is how long a grant that is shorter than asked, which is a push, may go without being claimed: a hold that is
// over by then costs no message for that.
const claimDelay = 5 * time.Millisecond

// renewalDue is when g is to be renewed next: a pause after the last confirmed renewal was sent, soon when the engine
// gave less than was asked for, and in any case after the pause that follows an attempt.
func (g *grant) renewalDue() instant {
	lease, pause := g.wanted()
	due := g.renewed.plus(pause)
	if g.sent.plus(g.lease) < g.renewed.plus(lease) {
		due = g.since.plus(min(claimDelay, g.lease/4))
	}
	return max(due, g.notBefore)
}

// napCheck is how often the scheduler looks while anything is held, although nothing is due: its timer stands still with
// the machine, and holders are to be told soon after it has woken up.
const napCheck = time.Second

// watch is the scheduler's goroutine. It ends with Close.
func (c *Client) watch() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.lock()
		now := c.now()
		c.heedNaps()
		batch := c.collect(now)
		next := min(c.seek.look(c, now), c.sched.next(now))
		c.sched.armed = next
		if len(batch) > 0 {
			c.background.Go(func() { c.renewBatch(batch) })
		}
		c.unlockHere()
		switch {
		case next == never:
			timer.Stop()
		case c.watching:
			timer.Reset(min(next.since(c.reading()), napCheck))
		default:
			timer.Reset(next.since(c.reading()))
		}
		select {
		case <-timer.C:
		case <-c.sched.wake:
		case <-c.base.Done():
			return
		}
	}
}

// next is when to look again. What it was armed for stays while nothing is held: a client that takes and gives back one lock
// after the other would else wake it for each. The caller holds Client.mu.
func (s *scheduler) next(now instant) instant {
	switch {
	case len(s.grants) > 0:
		return s.grants[0].due
	case s.armed > now:
		return s.armed
	}
	return never
}

// heedNaps puts every grant where it belongs after a suspension, which brings all ends nearer. The caller holds Client.mu.
func (c *Client) heedNaps() {
	if c.sched.naps == c.sleep.count {
		return
	}
	c.sched.naps = c.sleep.count
	for i := range c.sched.grants {
		c.sched.grants[i].due = c.sched.grants[i].g.nextLook()
	}
	heap.Init(&c.sched.grants)
}

// collect ends what is over and returns the renewals to send now. The caller holds Client.mu.
func (c *Client) collect(now instant) []renewal {
	var looked []*grant
	var batch []renewal
	for len(c.sched.grants) > 0 {
		g := c.sched.grants[0].g
		early := len(batch) > 0 && g.renewable(now) // it travels with those that are due
		if c.sched.grants[0].due > now && !early {
			break
		}
		heap.Pop(&c.sched.grants)
		c.expire(g, now)
		if g.phase == gone || g.between && g.reopen(now) {
			continue
		}
		if g.renewable(now) {
			if batch == nil { // with very many holds, to grow step by step would copy megabytes again and again
				room := min(c.sched.batch, len(c.sched.grants)) + 1
				batch, looked = make([]renewal, 0, room), slices.Grow(looked, room)
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

// renewable reports whether g may be renewed now: it is due, or nearly so. The pause after an attempt is always kept. The
// caller holds Client.mu.
func (g *grant) renewable(now instant) bool {
	if g.m.c.renewer == nil || !g.renewing() || now < g.notBefore {
		return false
	}
	_, pause := g.wanted()
	return g.renewalDue() <= now.plus(pause/10)
}

// expire ends g if its trust window is over, and those of its holds whose own end has come. The caller holds Client.mu.
func (c *Client) expire(g *grant, now instant) {
	if g.phase == gone {
		return
	}
	if end := g.deadline(); now >= end {
		c.end(g, g.reason(now, end))
		return
	}
	for l := range g.holds.all(ofGrant) {
		if now >= l.end {
			g.delay(l, now)
			l.lose(driver.LostExpired, nil)
		}
	}
	if g.holds.first == nil && !g.between && (g.phase == abandoned || !g.stay()) {
		c.end(g, driver.LostExpired)
	}
}

// reason says why the trust window of g ended at end.
func (g *grant) reason(now, end instant) LostReason {
	c, from := g.m.c, g.sent
	if g.session != nil {
		from = c.at(g.session.Confirmed())
	}
	switch {
	case now < end.plus(c.sleep.since(from)):
		return driver.LostSuspended // without the nap there would be time left
	case g.session == nil && !g.renewing():
		return driver.LostExpired
	default:
		return driver.LostUnconfirmed
	}
}

// end loses g on this process's own judgement. The engine may still count it as held, so it is given back as soon as the
// engine can be reached: it must not block others for longer than it protects anybody. The caller holds Client.mu.
//
// The release begins after the holder's contexts have been cancelled: nobody is to get in before the holder is told.
func (c *Client) end(g *grant, reason LostReason) {
	for l := range g.holds.all(ofGrant) {
		g.delay(l, c.reading())
	}
	give, left := g.release(), g.phase == abandoned || g.isPending()
	give.Keep = g.keep()
	after := g.leftFor()
	c.lose(g, reason, nil)
	if left {
		g.runOut(after)
		return
	}
	c.background.Add(1)
	c.settleAfter(give)
}

// settleAfter gives back in the background, once the contexts that are to be cancelled have been. The caller holds Client.mu,
// and has counted it as background.
func (c *Client) settleAfter(give *driver.Release) {
	c.todo.cancels = append(c.todo.cancels, func() {
		go func() { // ends with the engine's word, or with c.hard
			defer c.background.Done()
			_, _ = c.settleNow(give)
		}()
	})
}

// lose ends g and all its holds as a loss, and sends those who wait behind it to the engine: they must not wait for the
// loser's Unlock. The caller holds Client.mu.
func (c *Client) lose(g *grant, reason LostReason, cause error) {
	if g.phase == gone {
		return
	}
	for l := range g.holds.all(ofGrant) {
		l.lose(reason, cause)
	}
	g.drop()
	c.askFor(g.m)
}
