// Guarding holds: each hold that lasts for a while watches its own node, so that its owner learns when somebody has
// ended it. watch.go sets the watches and hears the events; the keeper calls guard.

package zklock

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

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
