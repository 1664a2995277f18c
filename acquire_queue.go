package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// queue is the line of goroutines of this process for one lock, first come, first served. At most one of them, whoever
// is first, is known to the engine: the queue's fetch asks on behalf of all. It exists only while somebody waits or
// asks; what the engine has granted passes from owner to owner inside the process, as long as grant.mayPass says.
//
// Guarded by Client.mu.
type queue struct {
	c *Client
	m *Mutex // of whoever came first; the others have the same queueKey

	waiters waiterList
	fetch   *fetch // what is being asked of the engine for the line; nil if nothing
}

// queueKey is what waiters must have in common to be served by the same request. Mutexes of the same name but with
// other leases have queues of their own and meet in the engine.
type queueKey struct {
	driver.Key
	lease   time.Duration
	delay   time.Duration // after a loss, which the engine knows from the request
	noRenew bool
}

func (m *Mutex) queueKey() queueKey {
	return queueKey{Key: m.key(), lease: m.p.lease, delay: m.p.lockDelay, noRenew: m.p.noRenew}
}

// queueFor returns the queue of this process for m. The caller holds Client.mu.
func (c *Client) queueFor(m *Mutex) *queue {
	q := c.queues[m.queueKey()]
	if q == nil {
		q = &queue{c: c, m: m}
		c.queues[m.queueKey()] = q
	}
	return q
}

// tidy forgets the queue when nothing is in it. The caller holds Client.mu.
func (q *queue) tidy() {
	if q.fetch != nil || q.waiters.first != nil {
		return
	}
	if at := q.m.queueKey(); q.c.queues[at] == q { // and not a later one, after a fetch that nobody waited for any more
		delete(q.c.queues, at)
	}
}

// inTheWay is who the engine says holds the lock, or nil if it has not said so. The caller holds Client.mu.
func (q *queue) inTheWay() *HeldError {
	if q.fetch == nil {
		return nil
	}
	return q.fetch.held
}

// remove takes w out of the line. When it was the last, nobody wants what the fetch would bring. The caller holds
// Client.mu.
func (q *queue) remove(w *waiter) {
	q.waiters.drop(w)
	w.lease.owner.waits.Add(-1)
	switch f := q.fetch; {
	case f == nil:
	case q.waiters.first == nil:
		f.cancel()
		q.fetch = nil
	case f.leader == w: // it asks no longer; see fetch.goOn
		f.first.end()
	}
	q.tidy()
}

// serve gives g to the first in line. The caller holds Client.mu and knows that somebody waits.
func (q *queue) serve(g *grant, local bool) {
	w := q.waiters.first
	w.grant(g, local)
	q.remove(w)
	g.admitOthers()
}

// admitOthers gives g to whoever else stands in a line for it as the same owner: they may be waiting for each other.
// The caller holds Client.mu.
func (g *grant) admitOthers() {
	o := g.holder().owner
	if g.m.p.share.direct {
		g.admitDirect(o)
		return
	}
	if o.waits.Load() == 0 { // as nearly always, and lines may be long
		return
	}
	g.m.c.suspectDeadlock(o)
	for _, q := range g.m.c.queues {
		if q.m.key() != g.m.key() {
			continue
		}
		q.waiters.each(func(w *waiter) {
			if w.lease.owner == o {
				w.grant(g, true)
				q.remove(w)
			}
		})
	}
	g.admitAlone(o)
}

// admitAlone gives g to whoever else asks for it alone as the same owner: a candidate, who has a value of its own, but
// leads already. What it asks for is undone. A named owner is let in by the engine, and a try does not wait. The caller
// holds Client.mu.
func (g *grant) admitAlone(o *owner) {
	if o.named {
		return
	}
	for w := range g.m.c.alone {
		if w.lease.owner == o && w.lease.m.key() == g.m.key() && !w.own.r.Try {
			w.leave()
			w.grant(g, true)
		}
	}
}

// fail answers everybody in line with err. The caller holds Client.mu.
func (q *queue) fail(err error) {
	q.waiters.each(func(w *waiter) {
		w.answer(err)
		q.remove(w)
	})
}

// startFetch asks the engine on behalf of the line, in a goroutine of its own, unless somebody of it has the lock or is
// asking already. give, if not nil, is given back in the same step. The caller holds Client.mu.
func (q *queue) startFetch(give *driver.Release) {
	if f := q.prepareFetch(give); f != nil {
		q.c.background.Go(f.run)
	}
}

// prepareFetch returns the fetch that startFetch starts, or nil if there is nothing to ask. The caller holds Client.mu.
func (q *queue) prepareFetch(give *driver.Release) *fetch {
	c := q.c
	if q.fetch != nil || c.passing(q.m) != nil || q.waiters.first == nil || c.closed {
		if give != nil {
			c.settle(q.m, give)
		}
		q.tidy()
		return nil
	}
	f := c.newFetch(q.waiters.first, false)
	f.q, f.give = q, give
	if give != nil && f.r.Tokens > 1 {
		f.r.Tokens = c.opts.LocalHandoffs + 1
	}
	q.fetch = f
	return f
}

// askFor asks on behalf of those who wait for m, if anybody does: what they waited behind is over. The caller holds
// Client.mu.
func (c *Client) askFor(m *Mutex) {
	if q := c.queues[m.queueKey()]; q != nil {
		q.startFetch(nil)
	}
}
