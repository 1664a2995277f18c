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

	waiters []*waiter
	grant   *grant // what the engine gave and this queue still has; nil if nothing
	fetch   *fetch // what is being asked of the engine for the line; nil if nothing
	begun   bool   // the engine has answered to the present waiters that somebody is in the way
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
	if len(q.waiters) == 0 {
		q.begun = false
	}
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
func (q *queue) idle() bool { return q.grant == nil && q.fetch == nil && len(q.waiters) == 0 }

// remove takes w out of the line. When it was the last, nobody wants what the fetch would bring. The caller holds
// Client.mu.
func (q *queue) remove(w *waiter) {
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	if len(q.waiters) == 0 && q.fetch != nil {
		q.fetch.cancel()
		q.fetch = nil
	}
	q.tidy()
}

// take makes g the queue's own and serves the first in line with it. The caller holds Client.mu and knows that somebody
// waits.
func (q *queue) take(g *grant) {
	q.grant, g.q, q.begun = g, q, false
	q.serve(g, false)
}

// serve gives g to the first in line. The caller holds Client.mu and knows that somebody waits.
func (q *queue) serve(g *grant, local bool) {
	w := q.waiters[0]
	w.grant(g, local)
	q.remove(w)
	g.admitOthers()
}

// admitOthers gives g to whoever else waits for it as the same owner: they may be waiting for each other. The caller
// holds Client.mu.
func (g *grant) admitOthers() {
	same := func(w *waiter) bool { return w.owner == g.owner }
	queues := g.c.queues[g.key]
	for i := len(queues) - 1; i >= 0; i-- { // backwards, because a queue that becomes empty leaves the list
		q := queues[i]
		for j := slices.IndexFunc(q.waiters, same); j >= 0; j = slices.IndexFunc(q.waiters, same) {
			w := q.waiters[j]
			w.grant(g, true)
			q.remove(w)
		}
	}
}

// fail answers everybody in line with err. The caller holds Client.mu.
func (q *queue) fail(err error) {
	for _, w := range slices.Clone(q.waiters) {
		w.answer(nil, err)
		q.remove(w)
	}
}

// startFetch asks the engine on behalf of the line, unless somebody of it has the lock or is asking already. give, if not
// nil, is given back in the same step. The caller holds Client.mu.
func (q *queue) startFetch(give *driver.Release) {
	if q.fetch != nil || q.grant != nil || len(q.waiters) == 0 || q.c.closed {
		if give != nil {
			q.c.settle(give)
		}
		q.tidy()
		return
	}
	f := newFetch(q, q.waiters[0])
	f.give = give
	q.fetch = f
	q.c.background.Go(f.run)
}
