// Watches on nodes' data: those of waiters on the node before them, and those of holds on their own. The library's
// events come in through fired; queue.go, recall.go and guard.go set watches.
//
// Three rules keep a waiter from sleeping for ever. It is entered in the watch before the watch is set in the server,
// so an event that comes at once finds it. An event uses the watch up, for all that wait on it. And after a
// reconnection all are woken, whatever the library has kept.

package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// watch is a watch on a node's data in a session. It is set once, for all who want it, and used up by its first event.
// The library sets it again after a reconnection, and the server tells what was missed. The library has a channel for
// each watch, which nobody reads: events come through session.fired, without a goroutine for each.
//
// Driver.mu guards it.
type watch struct {
	armed   bool // the server has confirmed it
	data    []byte
	stat    *zk.Stat
	waiters map[*entry]struct{} // those that the node is in the way of
	hold    *entry              // the hold whose own node it is; nil if none
}

// fired handles the event of a watch. It lets nobody in: anybody may write to a node, so a waiter only looks at the
// queue.
func (s *session) fired(ev zk.Event) {
	if ev.Type != zk.EventNodeDataChanged && ev.Type != zk.EventNodeDeleted {
		return // the library also tells of watches that end with the session; so does over
	}
	d := s.d
	d.mu.Lock()
	w := s.watches[ev.Path]
	delete(s.watches, ev.Path) // it is used up
	tell := nothingToTell
	var lost *entry
	if e := s.listeners[ev.Path]; e != nil && s.cause == nil && ev.Type == zk.EventNodeDataChanged {
		tell = s.askedFor(e)
	}
	if w != nil && s.cause == nil {
		for e := range w.waiters {
			d.woken++
			e.wake()
		}
		// Not ending: it was not we who changed the node.
		if e := w.hold; e != nil && e.phase == held && !e.ending {
			tell, lost = d.lose([]*entry{e}, driver.LostBroken, nil), e
		}
	}
	d.mu.Unlock()
	tell() // outside of the mutex: it is the users' code
	if lost != nil {
		d.sweepMark(lost)
	}
	if lost != nil && ev.Type == zk.EventNodeDataChanged {
		// It was written to and not deleted, so it is still in everybody's way.
		s.sweep(lost)
	}
}

// sweep removes the node of a hold that somebody has written to, which ends the hold: its owner has been told so. Until
// it is gone the next in line waits behind a hold that nobody has. The event may come before the connection can be
// used, since the library sets its watches again first.
func (s *session) sweep(e *entry) {
	s.d.spawn(func() { // ends with the session at the latest, which such a refusal ends too; see retire
		for {
			err := s.clear(e.path)
			s.removal(e.path, err)
			if !isRefusal(err) || !enginekit.Pause(s.line.ctx, s.pause()) {
				return
			}
		}
	})
}

// clear deletes a node of this session, over as many connections as it takes, because a session may last for long. It
// returns what a server has answered, or that the session or the driver has ended.
func (s *session) clear(path string) error {
	for {
		l, err := s.d.linkOf(s.d.life, s)
		if err != nil {
			return err
		}
		if err = l.delete(s.d.life, path); answered(err) {
			return err
		}
	}
}

// rearm has every watch set anew, and makes all waiters look at the queue. After a reconnection nothing may depend on
// what the library has made of the watches. The caller holds Driver.mu.
func (s *session) rearm() {
	for path, w := range s.watches {
		w.armed = false
		// Every waiter looks again: its blocker may have gone while nobody was listening.
		for e := range w.waiters {
			e.wake()
		}
		switch {
		case w.hold == nil:
		case w.hold.phase == held:
			s.young = append(s.young, w.hold)
		default:
			w.hold = nil
		}
		if len(w.waiters) == 0 && w.hold == nil {
			delete(s.watches, path)
		}
	}
	s.listenAnew()
}

// watchFor sets a watch for the waiting request e on the node at path, and returns what is there, or nil if there is
// nothing. It costs a round trip, or none if the session has such a watch.
func (l *link) watchFor(ctx context.Context, e *entry, path string) (*content, error) {
	d := l.s.d
	d.mu.Lock()
	w := l.s.watched(path)
	w.waiters[e] = struct{}{}
	select {
	case <-e.wait.news: // it is in no other watch, so what it was told before is over
	default:
	}
	if w.armed {
		defer d.mu.Unlock()
		return &content{w.data, w.stat}, nil
	}
	d.mu.Unlock()
	got, err := l.arm(ctx, path, w)
	if err != nil {
		l.s.unwatch(e, path)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	return got, err
}

// watched returns the watch on path, which may have to be armed. The caller holds Driver.mu.
func (s *session) watched(path string) *watch {
	w := s.watches[path]
	if w == nil {
		w = &watch{waiters: make(map[*entry]struct{})}
		s.watches[path] = w
	}
	return w
}

// arm sets the watch in the server. The event may come before arm has returned: it has then taken the watch away.
func (l *link) arm(ctx context.Context, path string, w *watch) (*content, error) {
	return ask(ctx, l, func(c *zk.Conn) (*content, error) {
		l.s.line.watching.Store(true)
		data, stat, _, err := c.GetW(path)
		if err != nil {
			return nil, err
		}
		l.s.d.mu.Lock()
		defer l.s.d.mu.Unlock()
		// All watches are set anew over the next connection, or were already.
		if l.s.link != l {
			return nil, zk.ErrConnectionClosed
		}
		w.armed, w.data, w.stat = true, data, stat
		return &content{data, stat}, nil
	})
}

// unwatch takes e, which does not wait any more, from the watch on path. An armed watch stays: the library cannot take
// it back, and it serves the next waiter there.
func (s *session) unwatch(e *entry, path string) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	w := s.watches[path]
	if w == nil {
		return
	}
	delete(w.waiters, e)
	if !w.armed && len(w.waiters) == 0 && w.hold == nil {
		delete(s.watches, path)
	}
}
