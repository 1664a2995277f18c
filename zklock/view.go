// Shared readings of a queue: waiters of one session that are woken together read it once. queue.go and recall.go look
// through here.
//
// The sharing is what keeps 1,000 readers behind one writer from reading a queue of 1,000 names 1,000 times. Readings
// of one lock follow each other on one goroutine, so at most two are wanted at any time: the one under way and the
// next.

package zklock

import (
	"context"

	"github.com/go-zookeeper/zk"
)

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
