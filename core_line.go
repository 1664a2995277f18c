package interlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

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

// waiterList is a queue's waiters in the order in which they came. It is a linked list, so that any one of thousands
// can leave at the same cost. A slice would move half of the line for each context that ends. Guarded by Client.mu.
type waiterList struct {
	first, last *waiter
}

// push puts w at the end.
func (n *waiterList) push(w *waiter) {
	w.before, w.standing = n.last, true
	if n.last == nil {
		n.first = w
	} else {
		n.last.behind = w
	}
	n.last = w
}

// drop takes w out. It does nothing if w is not in the list. The owner's count of waits is kept by queue.remove, which
// must come once for each waiter.
func (n *waiterList) drop(w *waiter) {
	if !w.standing {
		return
	}
	if w.before == nil {
		n.first = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		n.last = w.before
	} else {
		w.behind.before = w.before
	}
	w.before, w.behind, w.standing = nil, nil, false
}

// each calls f for every waiter, the first in line first. f may take out the waiter that it is called for, and no
// other.
func (n *waiterList) each(f func(*waiter)) {
	for w := n.first; w != nil; {
		behind := w.behind
		f(w)
		w = behind
	}
}

// waiter is one Lock or TryLock under way. It belongs to the goroutine of its caller; other goroutines answer it under
// Client.mu and wake it by closing ready.
type waiter struct {
	lease *Lease // the owner and the lock; it becomes a hold when the wait succeeds
	call
	q   *queue // in whose line it stands; nil if it stands in none
	own *fetch // the request on behalf of this waiter alone; nil if it stands in a line

	before, behind *waiter // neighbours in the line; see waiterList
	standing       bool    // it is in the line
	fresh          bool    // no request has used its owner's id yet; guarded by Client.mu

	ready chan struct{} // closed by answer; nil for a waiter on which nobody blocks

	announce func() // tells the Observer that w waits; nil once called or if nobody listens; guarded by Client.mu

	beside   *grant // the grant of its owner beside which it asks; nil if it asks on its own
	converts *Lease // the hold that a conversion moves to the new grant; nil for a call that gets a hold of its own
	// what converts held before, if nobody holds it any more; giveLeft releases it; guarded by Client.mu
	left *pendingRelease

	blocker *Lease     // the hold of this process that was in the way when w came; nil if none; guarded by Client.mu
	told    *HeldError // who holds the lock, by the engine's last word; nil until it says so; guarded by Client.mu
	broken  error      // why the engine has been silent since then; guarded by Client.mu
	doubt   bool       // the outcome of an earlier attempt is unknown; guarded by Client.mu
	late    uint8      // how many of its grants were over before it got them; guarded by Client.mu

	// Guarded by Client.mu; constant once ready is closed, so that said reads them without it.
	answered bool
	err      error
}

// answer ends the wait of w with a success (nil) or err. It is called once. The caller holds Client.mu, and takes a
// waiter in a line out of it.
func (w *waiter) answer(err error) {
	w.answered, w.err = true, err
	if w.own != nil {
		delete(w.lease.m.c.alone, w)
	}
	if w.ready != nil {
		close(w.ready)
	}
}

// grant ends the wait of w with a hold on g. local says that g passed on inside the process. The caller holds
// Client.mu.
func (w *waiter) grant(g *grant, local bool) {
	if w.converts != nil {
		w.left = w.converts.convertTo(g)
		w.answer(nil)
		return
	}
	g.admit(w.lease, w.start, w.lease.m.c.now(), local)
	w.answer(nil)
}

// decline gives back what w was granted in the instant in which its context ended. The caller of Lock does not wait for
// the engine to confirm that. The caller holds Client.mu.
func (w *waiter) decline() {
	if w.converts == nil { // else the grant stays: Upgrade and Downgrade see it and succeed
		w.lease.decline()
	}
}

// mustWait records who is in the way of w, and tells the Observer once for each call that it waits. held is nil if a
// hold of this process is in the way. The caller holds Client.mu.
func (w *waiter) mustWait(held *HeldError) {
	if held != nil {
		w.told, w.broken = held, nil
	}
	if w.announce != nil {
		w.lease.m.c.afterUnlock(w.announce)
		w.announce = nil
	}
}

// leave takes w out of its line, or cancels the request that is for w alone. The fetch undoes by itself whatever that
// request has left in the engine. The caller holds Client.mu.
func (w *waiter) leave() {
	if w.own != nil {
		delete(w.lease.m.c.alone, w)
		w.own.abandoned = true
		w.own.cancel()
		return
	}
	w.q.remove(w)
}

// hasBegun reports whether another owner is known to be in the way of w. From then on the wait survives broken
// connections; before, the first error ends it. The caller holds Client.mu.
func (w *waiter) hasBegun() bool { return w.told != nil || w.blocker != nil }

// overtaken gives w a hold on the grant that its owner has, if another goroutine of that owner was quicker. Without
// this the owner would wait for itself. The caller holds Client.mu.
func (c *core) overtaken(w *waiter) bool {
	g := c.liveGrant(w.lease.owner, w.lease.m.key())
	if g == nil {
		return false
	}
	g.admit(w.lease, w.start, c.now(), true)
	return true
}

// fetch is one acquisition that the engine is asked for: on behalf of a queue's line, or for one waiter alone (a try, a
// named owner, a conversion). A fetch for a line belongs to the queue and not to a waiter. So a waiter that gives up
// does not cost the others their place in the engine's queue. Undoing what a cancelled or ambiguous request may have
// left is the duty of the fetch, after the driver has returned.
type fetch struct {
	c      *core
	q      *queue  // whose line it is for; nil if it is for one waiter alone
	only   *waiter // the one waiter that it is for; nil if it is for a line
	leader *waiter // in whose goroutine it is asked first; nil if in a goroutine of its own; guarded by Client.mu
	beside *grant  // the grant beside which a conversion or re-entry asks; nil if it asks on its own
	r      driver.Request
	// what a successful answer becomes; made before the request, so that the driver can report its loss at any time
	g      *grant
	ctx    context.Context //nolint:containedctx // belongs to the request, whichever goroutine runs it
	cancel context.CancelFunc
	first  callContext     // what ctx is while the leader's goroutine asks; it costs nothing until a driver waits on it
	give   *driver.Release // what is released in the same step; nil if nothing

	// of a candidate: closed once nothing of the request is left that could be granted; nil of all others
	over chan struct{}
	// of a candidate: over of the request before it, which may still be undone; nil if there is none
	undone chan struct{}

	// Guarded by Client.mu.
	held      *HeldError // who holds the lock, once the engine has said so
	abandoned bool       // the waiter of only has left
	withdrawn bool       // it is about to, and waits for over: nothing is asked again
	settling  bool       // over is closed by the release of what the request may have left
	idle      bool       // no request is under way: it ended with an error, or a repetition has not been sent yet
}

// errAgain ends the wait of an owner that got in by another request meanwhile. attemptDirect then asks once more,
// beside that hold.
var errAgain = errors.New("the owner has got in meanwhile")

// mayReenter reports whether w would wait for its own owner if that owner had a hold of the lock. Permits do not
// re-enter, a request beside a hold is one already, and the engine re-enters named owners.
func (w *waiter) mayReenter() bool {
	return w.lease.m.p.share.of != nil && w.beside == nil && !w.lease.owner.named
}

// errReader refuses a write, or an upgrade, to an owner that only reads.
var errReader = fmt.Errorf("it only reads, and would wait for itself; take UpgradeableRLock to upgrade: %w",
	ErrDeadlock)

// admitDirect ends the other waits of o for this lock with errAgain, because o holds g now and they would wait for it.
// Each asks again beside g. The engine does so by itself for named owners. The caller holds Client.mu.
func (g *grant) admitDirect(o *owner) {
	if g.m.p.share.of == nil { // permits: each call takes its own
		return
	}
	if o.several() {
		g.spreadToken(o)
	}
	if o.named || o.waits.Load() == 0 {
		return
	}
	for w := range g.m.c.alone {
		if w.lease.owner == o && w.lease.m.key() == g.m.key() && w.beside == nil {
			w.leave()
			w.answer(errAgain)
		}
	}
}

// spreadToken gives the token of g, if g is an upgrade, to all holds of o on this lock. A fence that has seen the
// write's token would refuse a read with an older one, although both are the same owner's. The caller holds Client.mu.
func (g *grant) spreadToken(o *owner) {
	for _, l := range o.on(g.m.key()) {
		if l.m.c != g.m.c || l.ended() != nil {
			continue
		}
		if l.g.TakeToken(&g.Grant); l.upgradePair != nil {
			l.upgradePair.g.TakeToken(&g.Grant)
		}
	}
}

// call is what all attempts of one Lock, TryLock, Upgrade or the like have in common.
type call struct {
	start   trust.Instant // when the call began: Event.Waited counts from here
	waiting *announcement // nil if the Observer has no Waiting
}

// announcement tells the Observer that a call waits: once, however many attempts the call takes, and never after its
// end. So a gauge of waiting calls can count up in Waiting and down in what ends the call.
type announcement struct {
	mu   sync.Mutex    // guards the others; never held while Waiting runs
	told chan struct{} // closed when Waiting has returned; nil until it is called
	over bool          // the call has ended, so Waiting must not be called any more
}

// hasOthers reports whether l's owner has another live hold of the same lock in this process. The caller holds
// Client.mu.
func (l *Lease) hasOthers() bool {
	return l.owner.first(l.m.c, l.m.key(), func(other *Lease) bool { return other != l && other.ended() == nil }) != nil
}
