// Watches on nodes' data: those of waiters on the node before them, and those of holds on their own. The library's
// events come in through fired.
//
// Three rules keep a waiter from sleeping for ever. It is entered in the watch before the watch is set in the server,
// so an event that comes at once finds it. An event uses the watch up, for all that wait on it. And after a
// reconnection all are woken, whatever the library has kept.

package zklock

import (
	"context"
	"errors"
	"time"

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

// Guarding holds: each hold that lasts for a while watches its own node, so that its owner learns when somebody has
// ended it. The keeper calls guard.

// guardAfter is how long a hold lasts before its own node is watched, so that short holds do not pay the round trip. A
// holder whose node was removed by somebody else learns of it that much later at most.
const guardAfter = 100 * time.Millisecond

// hasYoung reports whether there are holds that are not watched yet, or do not hear who asks.
func (s *session) hasYoung() bool {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return len(s.young) > 0 || len(s.unlistening) > 0
}

// guard has the nodes of holds watched that are old enough, and makes those listen that must, one after the other in
// the background. The keeper calls it, and must not wait for the servers here.
func (s *session) guard() {
	s.d.mu.Lock()
	l := s.link
	if l == nil {
		s.d.mu.Unlock()
		return
	}
	old := s.takeOld(time.Now())
	due := s.takeDue() // after takeOld, which adds to them
	s.d.mu.Unlock()
	if len(old) > 0 || len(due) > 0 {
		s.d.spawn(func() { l.guardAll(old, due) }) // ends with the last answer, or with the connection
	}
}

// takeOld returns the holds that have lasted for guardAfter, and leaves the others. Those that are over by now are in
// neither, so a short hold costs no watch. The caller holds Driver.mu.
func (s *session) takeOld(now time.Time) (old []*entry) {
	var young []*entry
	for _, e := range s.young {
		switch {
		case e.phase != held || e.s != s:
		case now.Sub(e.since) < guardAfter:
			young = append(young, e)
		default:
			old = append(old, e)
			if s.mustListen(e) {
				s.listenLater(e)
			}
		}
	}
	s.young = young
	return old
}

// guardAll listens for due and guards old. It runs in a goroutine of its own. What fails with the connection is put
// back, for the next connection. A hold that a server refuses to watch, because a right is missing, is put back alone:
// it must not keep the others waiting.
func (l *link) guardAll(old, due []*entry) {
	for i, e := range due {
		err := l.listen(e)
		if !answered(err) {
			l.s.remain(old, due[i:])
			return
		}
		if err != nil {
			l.s.remain(nil, due[i:i+1])
		}
	}
	for i, e := range old {
		err := l.guard(e)
		if !answered(err) {
			l.s.remain(old[i:], nil)
			return
		}
		if err != nil {
			l.s.remain(old[i:i+1], nil)
		}
	}
}

// remain puts back what could not be watched.
func (s *session) remain(old, due []*entry) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.young = append(s.young, old...)
	for _, e := range due {
		s.listenLater(e)
	}
}

// guard watches the node of a hold. A hold whose node is gone, or was written to since the grant, is lost. A gone node
// is handled as its event would be, so there is one way in which a hold is broken.
func (l *link) guard(e *entry) error {
	d := l.s.d
	d.mu.Lock()
	if e.phase != held || e.ending {
		d.mu.Unlock()
		return nil
	}
	w := l.s.watched(e.path)
	w.hold = e
	armed, stat := w.armed, w.stat
	d.mu.Unlock()
	if !armed {
		got, err := l.arm(d.life, e.path, w)
		if errors.Is(err, zk.ErrNoNode) {
			l.s.fired(zk.Event{Type: zk.EventNodeDeleted, Path: e.path})
			return nil
		}
		if err != nil {
			return err
		}
		stat = got.stat
	}
	// Written to before the watch was set, and after the grant: no event tells of that.
	if stat.Mzxid > e.asOf {
		l.s.fired(zk.Event{Type: zk.EventNodeDataChanged, Path: e.path})
	}
	return nil
}
