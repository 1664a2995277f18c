package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The line of goroutines that want one lock, and what serves it: a grant that passes on inside the process, or the
// answer to the line's one request. acquire_join.go puts waiters in, acquire_fetch.go asks for them, and release.go
// passes grants to them.

// queue is the line of goroutines of this process that wait for one lock, first come, first served. The engine knows
// only one waiter for the whole line: the queue's fetch asks on behalf of whoever is first. A grant then passes from
// owner to owner inside the process for as long as grant.mayPass allows. The queue exists only while somebody waits or
// a request is under way.
//
// Guarded by Client.mu.
type queue struct {
	c *core
	m *lock // of whoever came first; the others have the same queueKey

	waiters waiterList
	fetch   *fetch // the request on behalf of the line; nil if none is under way
}

// queueKey is what waiters must have in common to be served by the same request. The engine grants one lease, one delay
// and one kind of renewal for all of them. Mutexes of the same name with other options have queues of their own, and
// compete in the engine.
type queueKey struct {
	driver.Key
	lease   time.Duration
	delay   time.Duration // LockOptions.LockDelay, which the engine learns from the request
	noRenew bool
}

func (m *lock) queueKey() queueKey {
	return queueKey{Key: m.key(), lease: m.p.Lease, delay: m.p.LockDelay, noRenew: m.p.NoRenew}
}

// queueFor returns the queue for m, and makes it if nobody waits yet. The caller holds Client.mu.
func (c *core) queueFor(m *lock) *queue {
	q := c.queues[m.queueKey()]
	if q == nil {
		q = &queue{c: c, m: m}
		c.queues[m.queueKey()] = q
	}
	return q
}

// tidy forgets the queue when nothing is in it, so that a client keeps nothing of locks that are no longer in use. The
// caller holds Client.mu.
func (q *queue) tidy() {
	if q.fetch != nil || q.waiters.first != nil {
		return
	}
	// A fetch that nobody waits for any more may outlive its queue. It must not delete a later queue of the same key.
	if at := q.m.queueKey(); q.c.queues[at] == q {
		delete(q.c.queues, at)
	}
}

// inTheWay returns the holder that the engine has named to the line's request, or nil if it has named none. The caller
// holds Client.mu.
func (q *queue) inTheWay() *HeldError {
	if q.fetch == nil {
		return nil
	}
	return q.fetch.held
}

// remove takes w out of the line. If w was the last, the request is cancelled: nobody would use its answer. If w led
// the request, another goroutine goes on with it. The caller holds Client.mu.
func (q *queue) remove(w *waiter) {
	q.waiters.drop(w)
	w.lease.owner.waits.Add(-1)
	switch f := q.fetch; {
	// The line waits for a grant of this process, and asks nothing.
	case f == nil:
	case q.waiters.first == nil:
		f.cancel()
		// The driver may return much later. done then finds that it is no longer the queue's fetch and gives its answer
		// back.
		q.fetch = nil
	case f.leader == w: // its goroutine leaves; fetch.goOn asks again for the others
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

// admitOthers gives g to every other waiter of the same owner. The owner's goroutines may depend on each other, so one
// of them must not wait while another holds the lock. The caller holds Client.mu.
func (g *grant) admitOthers() {
	o := g.holder().owner
	if g.m.p.share.direct {
		g.admitDirect(o)
		return
	}
	// The count makes the common case free: without it each grant would walk all lines.
	if o.waits.Load() == 0 {
		return
	}
	g.m.c.shell.suspectDeadlock(o)
	// The same owner may wait in another queue of this lock, with other options.
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

// admitAlone gives g to waiters of the same owner that stand in no line: candidates of an election, who have a value of
// their own, whose owner leads already. Their requests are undone. Named owners are left to the engine, which re-enters
// them by itself, and tries do not wait. The caller holds Client.mu.
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

// fail answers everybody in line with err, and empties the line. The caller holds Client.mu.
func (q *queue) fail(err error) {
	q.waiters.each(func(w *waiter) {
		w.answer(err)
		q.remove(w)
	})
}

// startFetch asks the engine on behalf of the line, in a goroutine of its own. It does nothing if a grant of this
// process will pass to the line, or if a request is under way. give, if not nil, is released in the same step as the
// request. The caller holds Client.mu.
func (q *queue) startFetch(give *driver.Release) {
	if f := q.prepareFetch(give); f != nil {
		q.c.emit(effect{verb: sendRequest, fetch: f})
	}
}

// prepareFetch returns the fetch that startFetch starts, or nil if there is nothing to ask. Then give is released by
// itself, in the background. The caller holds Client.mu.
func (q *queue) prepareFetch(give *driver.Release) *fetch {
	c := q.c
	if q.fetch != nil || c.passing(q.m) != nil || q.waiters.first == nil || c.closed {
		if give != nil {
			c.settle(q.m, give)
		}
		q.tidy()
		return nil
	}
	f := c.shell.newFetch(q.waiters.first, false)
	f.q, f.give = q, give
	// The process has passed the lock on for as long as it may and still has waiters, so it asks for the largest block
	// of tokens next. See firstPasses.
	if give != nil && f.r.Tokens > 1 {
		f.r.Tokens = c.env.LocalHandoffs + 1
	}
	q.fetch = f
	return f
}

// askFor asks the engine on behalf of the line for m, if there is one: what the line waited for has gone. The caller
// holds Client.mu.
func (c *core) askFor(m *lock) {
	if q := c.queues[m.queueKey()]; q != nil {
		q.startFetch(nil)
	}
}
