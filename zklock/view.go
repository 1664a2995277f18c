package zklock

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// view is a lock's queue as it was read at one moment. Several requests may use it, so nobody changes it.
type view struct {
	places []queuePlace
	stat   *zk.Stat // of the lock's node
	err    error
	done   chan struct{} // closed when the rest is set
}

// viewing is what reads one lock's queue over one connection.
type viewing struct {
	next *view // asked for when the one that is under way is here; nil if nobody wants it
}

// view reads a lock's queue. Requests of one session that look at the same time share a reading, since a writer that
// leaves wakes all readers at once. A caller never gets one that was asked for before it called: it has been told of
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

// readQueue reads the queue of a lock until nobody wants a newer reading.
func (l *link) readQueue(lock string, reads *viewing) {
	for {
		l.s.d.mu.Lock()
		v := reads.next
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
