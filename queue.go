package interlock

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// queue is the line of goroutines of this process for one lock, first come, first served. At most one of them, whoever is
// first, is known to the engine: the queue's fetch asks on behalf of all. What the engine grants belongs to the queue and
// passes from owner to owner inside the process, as long as grant.mayPass says.
//
// Guarded by Client.mu.
type queue struct {
	c   *Client
	key queueKey

	waiters line
	grant   *grant // what the engine gave and this queue still has; nil if nothing
	fetch   *fetch // what is being asked of the engine for the line; nil if nothing
}

// queueKey is what waiters must have in common to be served by the same request. Mutexes of the same name but with other
// leases have queues of their own and meet in the engine.
type queueKey struct {
	driver.Key
	lease   time.Duration
	noRenew bool
}

// queueFor returns the queue of this process for m. The caller holds Client.mu.
func (c *Client) queueFor(m *Mutex) *queue {
	if q := c.findQueue(m); q != nil {
		return q
	}
	q := &queue{c: c, key: queueKey{Key: m.key, lease: m.p.lease, noRenew: m.p.noRenew}}
	c.queues[m.key] = append(c.queues[m.key], q)
	return q
}

// tidy forgets the queue when nothing is in it. The caller holds Client.mu.
func (q *queue) tidy() {
	if !q.idle() {
		return
	}
	rest := slices.DeleteFunc(q.c.queues[q.key.Key], func(other *queue) bool { return other == q })
	if len(rest) == 0 {
		delete(q.c.queues, q.key.Key)
		return
	}
	q.c.queues[q.key.Key] = rest
}

// idle reports that nobody of this process holds, waits or asks through this queue.
func (q *queue) idle() bool { return q.grant == nil && q.fetch == nil && q.waiters.length == 0 }

// remove takes w out of the line. When it was the last, nobody wants what the fetch would bring. The caller holds
// Client.mu.
func (q *queue) remove(w *waiter) {
	q.waiters.drop(w)
	w.owner.forgetWait(w)
	if q.waiters.length == 0 && q.fetch != nil {
		q.fetch.cancel()
		q.fetch = nil
	}
	q.tidy()
}

// take makes g the queue's own and serves the first in line with it. The caller holds Client.mu and knows that somebody
// waits.
func (q *queue) take(g *grant) {
	if q.grant != nil {
		q.grant.q = nil // the engine gave the lock to g, so this one is over although nobody has told us yet
	}
	q.grant, g.q = g, q
	q.serve(g, false)
}

// serve gives g to the first in line. The caller holds Client.mu and knows that somebody waits.
func (q *queue) serve(g *grant, local bool) {
	w := q.waiters.first
	w.grant(g, local)
	q.remove(w)
	g.admitOthers()
}

// admitOthers gives g to whoever else stands in a line for it as the same owner: they may be waiting for each other. The
// caller holds Client.mu.
func (g *grant) admitOthers() {
	for _, w := range g.owner.waits(g.c, g.key) {
		w.grant(g, true)
		w.q.remove(w)
	}
}

// fail answers everybody in line with err. The caller holds Client.mu.
func (q *queue) fail(err error) {
	q.waiters.each(func(w *waiter) {
		w.answer(nil, err)
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
	if q.fetch != nil || q.grant != nil || q.waiters.length == 0 || q.c.closed {
		if give != nil {
			q.c.settle(give)
		}
		q.tidy()
		return nil
	}
	f := newFetch(q, q.waiters.first)
	f.give = give
	q.fetch = f
	return f
}
