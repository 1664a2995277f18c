// Reading the queue, and waiting for the one node that is in the way. acquire.go has made the request's node.
//
// The order of the recipe is: read the queue, watch the blocker, and read the queue again when the watch has fired.
// Whoever leaves between the reading and the watch is noticed, because a watch on a node that has gone is answered by
// its absence (queueBehind returns errAgain).

package zklock

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// look reads the queue and reports whether nothing is in the way. Otherwise it watches the nearest node that is, and
// tells the caller who has the lock; a try is refused.
func (a *attempt) look(ctx context.Context, l *link) (free bool, err error) {
	e := a.e
	lock := a.d.tree.lock(e.key)
	found, err := l.view(ctx, lock)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return false, err
	}
	var all []queuePlace
	if err == nil {
		all = found.places
	}
	name := strings.TrimPrefix(e.path, lock+"/")
	// The node is looked for by name and not taken for granted: without it in the queue there is no place that could be
	// the first.
	mine := slices.IndexFunc(all, func(p queuePlace) bool { return p.name == name })
	// Somebody has removed its node, so the request begins again.
	if mine < 0 {
		a.own("", 0)
		return false, errAgain
	}
	in := blocker(all, mine)
	if in < 0 {
		e.asOf = max(e.czxid, found.stat.Pzxid) // writes to its node before that are no reason to end the hold
		return true, nil
	}
	if a.r.Try {
		return false, a.refuse(ctx, l, all[0])
	}
	return false, a.queueBehind(ctx, l, all, in)
}

// queueBehind watches the node at index in, and tells who has the lock. The watch is set before the holder is read: a
// change in between is not missed. For all but the second in line that is one more round trip; the caller hears of a
// holder, not of another waiter.
func (a *attempt) queueBehind(ctx context.Context, l *link, all []queuePlace, in int) error {
	e, w := a.e, a.e.wait
	lock := a.d.tree.lock(e.key)
	path := lock + "/" + all[in].name
	before, err := l.watchFor(ctx, e, path)
	if err != nil {
		return err
	}
	if before == nil {
		return errAgain // it has gone since
	}
	holder := &seen{queuePlace: all[in], note: parseNote(before.data), stat: before.stat}
	// The watched node is not the holder, so the holder is read too.
	if in > 0 {
		if holder, err = l.read(ctx, lock, all[0]); err != nil {
			l.s.unwatch(e, path)
			return err
		}
	}
	w.blocker = path
	w.held = heldBy(e.key, holder)
	if a.r.Waiting != nil {
		a.r.Waiting(w.held)
	}
	return nil
}

// await blocks until something has happened to the node that was in the way, and returns errAgain. The queue must be
// looked at then, which alone lets the request in. An event says neither what happened nor who did it: a waiter may
// have left, and anybody may write to a node. A request that gives up stays in the queue and keeps its watch, until it
// is undone or asked again. It needs no timer: a watch that is lost with its connection is made up for by rearm, and a
// session that ends closes over.
func (a *attempt) await(ctx context.Context, l *link) error {
	e, w := a.e, a.e.wait
	select {
	case <-w.news:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.gone:
		return driver.ErrLost
	case <-l.s.over: // its node has gone with the session
		return errOver
	case <-a.d.life.Done():
		return driver.ErrClosed
	}
	path := w.blocker
	w.blocker = ""
	l.s.unwatch(e, path)
	return errAgain
}

// refuse ends a try: it names the holder, and removes the try's own node at the same time. It does neither if the
// holder has just left, as one that merely retained the lock does when it is asked. Then the lock may be free, and it
// looks again.
func (a *attempt) refuse(ctx context.Context, l *link, first queuePlace) error {
	lock, e := a.d.tree.lock(a.e.key), a.e
	removed := make(chan error, 1)
	path := e.path
	if !a.d.spawn(func() { removed <- l.leaveBehind(ctx, lock+"/"+first.name, path) }) {
		return driver.ErrClosed
	}
	holder, err := l.read(ctx, lock, first)
	if gone := <-removed; gone != nil {
		return gone
	}
	a.own("", 0)
	l.tidy(lock)
	switch {
	case err != nil:
		return err
	case holder == nil: // it left after that, so the request begins again
		return errAgain
	}
	return heldBy(e.key, holder)
}

// leaveBehind deletes the node at path, which may be gone, if the holder's node is there. Otherwise it returns
// errAgain. One transaction does both, so a try is never refused because of a holder that was gone when it left. A node
// that is gone already, which is operation 1, is as good: an operator may have removed it.
func (l *link) leaveBehind(ctx context.Context, holder, path string) error {
	failed, err := l.transact(ctx, &zk.CheckVersionRequest{Path: holder, Version: -1},
		&zk.DeleteRequest{Path: path, Version: -1})
	switch {
	case failed == 0 && errors.Is(err, zk.ErrNoNode):
		return errAgain
	case failed == 1 && errors.Is(err, zk.ErrNoNode):
		return nil
	}
	return err
}

// Shared readings of a queue: waiters of one session that are woken together read it once.
//
// The sharing is what keeps 1,000 readers behind one writer from reading a queue of 1,000 names 1,000 times. Readings
// of one lock follow each other on one goroutine, so at most two are wanted at any time: the one under way and the
// next.

// view is a lock's queue as it was read at one moment. Several requests may use it, so it is not changed after done is
// closed.
type view struct {
	places []queuePlace
	stat   *zk.Stat // of the lock's node
	err    error
	done   chan struct{} // closed when the other fields are set
}

// viewing is the goroutine that reads one lock's queue over one connection.
type viewing struct {
	next *view // asked for while a reading is under way; nil if nobody wants it
}

// view reads a lock's queue. Requests of one session that look at the same time share a reading, because a writer that
// leaves wakes all readers at once. A caller never gets a reading that was asked for before it called: it was told of
// something newer.
func (l *link) view(ctx context.Context, lock string) (*view, error) {
	d := l.s.d
	d.mu.Lock()
	reads := l.viewings[lock]
	begins := reads == nil
	if begins {
		reads = new(viewing)
		if l.viewings == nil {
			l.viewings = make(map[string]*viewing)
		}
		l.viewings[lock] = reads
	}
	// A reading that is under way may be too old, so the next one is joined.
	if reads.next == nil {
		reads.next = &view{done: make(chan struct{})}
	}
	v := reads.next
	d.mu.Unlock()
	if begins && !d.spawn(func() { l.readQueue(lock, reads) }) { // ends when nobody wants another reading
		return nil, errOver
	}
	select {
	case <-v.done:
		return v, v.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.s.over:
		return nil, errOver
	}
}

// readQueue reads the queue of a lock until nobody wants a newer reading. It is a goroutine of its own.
func (l *link) readQueue(lock string, reads *viewing) {
	for {
		l.s.d.mu.Lock()
		v := reads.next
		// Under the mutex, so that a request either finds this goroutine with a next reading, or starts another.
		if v == nil {
			delete(l.viewings, lock)
			l.s.d.mu.Unlock()
			return
		}
		reads.next = nil
		l.s.d.mu.Unlock()
		found, err := now(l, false, func(c *zk.Conn) (listing, error) {
			names, stat, err := c.Children(lock)
			return listing{names, stat}, err
		})
		v.places, v.stat, v.err = inOrder(found.names), found.stat, err
		close(v.done)
	}
}
