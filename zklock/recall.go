// Recalls: a holder learns that another client wants its lock (driver.Recalls). watch.go hears the event; retain.go
// shows what is kept.

package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// How a holder learns that another wants its lock.
//
// Each request writes to the lock's node in the transaction that makes its own, a try too, whose node is gone soon, and
// nothing else ever writes there. So a holder watches the data of the lock's node. The node's mzxid says at any time
// whether somebody has asked since the holder did: a message that was lost with its connection is found by one read.
// Clients of earlier versions ask in the same way, so they recall as well.
//
// A watch on the children would cost a list of the whole queue, wake the holder for each request that leaves, and miss
// a try between two reads.

// recallable is the part of an entry that is about others who want the lock. Driver.mu guards it. What Acquire sets
// does not change during a hold.
type recallable struct {
	wanted  func() // the caller's code; nil if nobody wants to know
	retains bool   // the client may keep the hold after its owner has released it
	// It only grows, so a read that comes late tells nothing twice.
	lastAsk int64 // the last transaction at the lock's node that the holder knows of
	asked   bool  // another client has asked since the hold began, as far as the holder knows
	due     bool  // it is in session.unlistening
}

// nothingToTell is for an event that nobody must be told of.
func nothingToTell() {}

// tellWanted returns a function that tells the holder that another client wants the lock. The caller holds Driver.mu,
// and calls the function when it does not hold it any more. A hold that is being released has no need of it, and one
// that nobody has any more must not be told.
func (d *Driver) tellWanted(e *entry) (tell func()) {
	if d.closed || e.phase != held || e.ending || e.wanted == nil {
		return nothingToTell
	}
	e.asked = true
	return e.wanted
}

// listenNow makes a hold that may be retained hear who asks, in the background. A hold that came after a wait is not
// retained, so it is in no hurry and listens later, with the others. So a lock for which many processes wait in turn
// costs no message more.
func (d *Driver) listenNow(l *link, e *entry) {
	d.spawn(func() { // ends with the answer, or with the connection
		if err := l.listen(e); err != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			l.s.listenLater(e)
		}
	})
}

// listenLater makes the keeper listen for e, a tenth of a second later at most and for all such holds together. That
// bounds what many requests cost the holder. The caller holds Driver.mu.
func (s *session) listenLater(e *entry) {
	if !e.due {
		e.due = true
		s.unlistening = append(s.unlistening, e)
		s.wakeKeeper()
	}
}

// takeDue returns the holds that must listen now. The caller holds Driver.mu.
func (s *session) takeDue() (due []*entry) {
	due, s.unlistening = s.unlistening, nil
	for _, e := range due {
		e.due = false
	}
	return due
}

// listen makes the holder e hear of requests from now on, and of those since its own. It costs one round trip: the
// watch and the mzxid come in one answer, so nothing falls between them.
func (l *link) listen(e *entry) error {
	d, lock := l.s.d, parent(e.path)
	d.mu.Lock()
	if e.phase != held || e.ending { // as all holds are whose session is over
		d.mu.Unlock()
		return nil
	}
	l.s.listeners[lock] = e // before the watch is set: its event may come at once
	d.mu.Unlock()
	stat, err := ask(d.life, l, func(c *zk.Conn) (*zk.Stat, error) {
		l.s.line.watching.Store(true)
		_, stat, _, err := c.GetW(lock)
		return stat, err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil // then the hold's own node is gone too, and its watch says so
	case err != nil:
		return err
	}
	d.mu.Lock()
	tell := nothingToTell
	if stat.Mzxid > e.lastAsk {
		e.lastAsk = stat.Mzxid
		tell = d.tellWanted(e)
	}
	d.mu.Unlock()
	tell()
	return nil
}

// remind is what the answer to a renewal would say on other engines: it tells the holder e again whether others wait
// now. If nobody has asked, it sends nothing: the server tells of the first that does, and the keeper sees to that.
func (l *link) remind(ctx context.Context, e *entry) error {
	d := l.s.d
	d.mu.Lock()
	asked := e.asked
	d.mu.Unlock()
	if !asked {
		return nil
	}
	found, err := l.view(ctx, parent(e.path))
	// Alone in the queue it has nobody to tell of.
	if err != nil || len(found.places) < 2 {
		return err
	}
	d.mu.Lock()
	tell := d.tellWanted(e)
	d.mu.Unlock()
	tell()
	return nil
}

// askedFor records that the data of a lock's node has changed, which its holder e watches. The watch is used up. A
// holder that may retain the lock hears of each further request; any other one has heard enough. The caller holds
// Driver.mu, and calls tell when it does not hold it any more.
func (s *session) askedFor(e *entry) (tell func()) {
	if e.retains {
		s.listenLater(e)
	}
	return s.d.tellWanted(e)
}

// listenAnew makes all listen again. After a reconnection nothing may depend on what the library has made of the
// watches. The caller holds Driver.mu. The reading that goes with the watch also finds who has asked while there was no
// connection.
func (s *session) listenAnew() {
	for _, e := range s.listeners {
		s.listenLater(e)
	}
}

// stopListening forgets that e listens. The caller holds Driver.mu. The next holder of this process may have taken the
// place already; then it stays.
func (s *session) stopListening(e *entry) {
	if lock := parent(e.path); s.listeners[lock] == e {
		delete(s.listeners, lock)
	}
}

// mustListen reports whether e, which has lasted for a while, must still be made to listen. The caller holds Driver.mu.
func (s *session) mustListen(e *entry) bool {
	return e.wanted != nil && s.listeners[parent(e.path)] != e
}
