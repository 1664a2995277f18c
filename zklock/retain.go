// Showing a hold as retained (docs/rationale.md, Retention). The scheduler calls Renew; release.go removes the mark
// with the hold.
//
// A mark is for operators and decides nothing about who has the lock. So it may be late, or missing after a fault. But
// marks that stay behind their holds would pile up in a session that lasts, so every end of a hold removes its own.

package zklock

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// A hold that its client retains, for nobody, has a mark beside its node: an ephemeral node whose name is that of the
// request with a word before it that begins like no mode, so that clients of earlier versions ignore it. A write to the
// request itself would end the hold, and clients before that rule would take it for a release.

// idle begins the name of a mark.
const idle = "idle."

// markOf returns the path of the mark of the request at path.
func markOf(path string) string {
	lock := parent(path)
	return lock + "/" + idle + strings.TrimPrefix(path, lock+"/")
}

// showing is the part of an entry that is about its mark. It is used in the turn only.
type showing struct {
	pass int  // the latest pass inside the process that was heard of
	idle bool // no owner has the hold since that pass
	mark mark // what is known of the mark in the store
}

// mark is what is known of the node that shows a hold as retained.
type mark uint8

const (
	unmarked mark = iota
	marked
	// The next attempt sets the mark again, whatever is there; setMark takes both outcomes.
	unclear // an answer was lost
)

// Renew shows operators that a hold is retained, or that it has an owner again, and tells the holder whether others
// wait. That costs one round trip if something else is shown so far, and another if somebody has asked since the hold
// began; otherwise nothing. It lengthens nothing, because a hold lasts as long as the session. It calls done once for
// each, from several goroutines, and returns after the last. The bound on goroutines is that of listings: a client may
// retain thousands of locks.
func (d *Driver) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	var workers sync.WaitGroup
	for worker := range min(readers, len(batch)) {
		workers.Go(func() { // ends with its last answer, or with ctx
			for i := worker; i < len(batch); i += readers {
				done(i, d.renew(ctx, &batch[i]))
			}
		})
	}
	workers.Wait()
}

// renew is Renew for one hold.
func (d *Driver) renew(ctx context.Context, r *driver.Renewal) error {
	hold := &driver.Release{Key: r.Key, ID: r.ID}
	e, err := d.holdOf(hold)
	if err != nil {
		return err
	}
	if err := e.take(ctx); err != nil {
		return err
	}
	defer e.give()
	if _, err := d.holdOf(hold); err != nil { // a release was quicker
		return err
	}
	e.heed(r)
	return d.holdError(ctx, "renew", e, d.refresh(ctx, e))
}

// refresh makes the mark of e as it must be, and tells its holder whether others wait. It tries again over the next
// connection as long as the session lives. The caller has the turn of e.
func (d *Driver) refresh(ctx context.Context, e *entry) error {
	for {
		l, err := d.linkOf(ctx, e.s)
		if err == nil {
			err = l.show(ctx, e)
		}
		if err == nil {
			err = l.remind(ctx, e)
		}
		// An error that passes is one of the connection: the next one is waited for in linkOf.
		if err == nil || errors.Is(err, errOver) || !isPassing(err) {
			return err
		}
	}
}

// heed records what r says of its hold. A late renewal says nothing: a later owner may have the hold by now, and what
// was retained stays so until there is one. The passes are numbered by the portable layer, so their order does not
// depend on that of the calls.
func (s *showing) heed(r *driver.Renewal) {
	switch {
	case r.Pass > s.pass:
		s.pass, s.idle = r.Pass, r.Retained
	case r.Pass == s.pass && r.Retained:
		s.idle = true
	}
}

// show makes or removes the mark of e. The caller has the turn of e.
func (l *link) show(ctx context.Context, e *entry) error {
	want := unmarked
	if e.idle {
		want = marked
	}
	if e.mark == want {
		return nil
	}
	return l.setMark(ctx, e, want)
}

// setMark is one transaction. Its first check refuses a copy that arrives late, over an earlier connection; its second
// lets no mark outlive the hold.
func (l *link) setMark(ctx context.Context, e *entry, want mark) error {
	ops := []any{&zk.CheckVersionRequest{Path: l.node, Version: l.epoch}}
	there := &zk.CheckVersionRequest{Path: e.path, Version: -1}
	if want == marked {
		ops = append(ops, there, &zk.CreateRequest{
			Path: markOf(e.path), Data: nothing, Acl: l.s.d.opts.ACL, Flags: zk.FlagEphemeral,
		})
	} else {
		ops = append(ops, &zk.DeleteRequest{Path: markOf(e.path), Version: -1})
	}
	e.mark = unclear // until there is an answer
	failed, err := l.transact(ctx, ops...)
	switch {
	// Also if it is as wanted already: an earlier answer was lost.
	case err == nil, failed == 2 && errors.Is(err, zk.ErrNodeExists),
		want == unmarked && failed == 1 && errors.Is(err, zk.ErrNoNode):
		e.mark = want
		return nil
	case failed == 0:
		l.stale()
		return errStale
	case failed == 1 && errors.Is(err, zk.ErrNoNode):
		e.mark = unmarked
		return lostError(e.key, driver.LostBroken) // the watch on its node tells the holder
	}
	return err
}

// transact makes one transaction. If it was refused, failed is the index of the operation that was the reason,
// otherwise -1.
func (l *link) transact(ctx context.Context, ops ...any) (failed int, err error) {
	index, err := tell(ctx, l, func(c *zk.Conn) (int, error) {
		_, index, err := multi(c, ops...)
		return index, err
	})
	if !answered(err) { // nothing came, not even an index
		return -1, err
	}
	return index, err
}

// removeHold deletes the node of a hold, together with its mark if there may be one. The caller has the turn of e. In
// one transaction, so that no moment shows a mark without a hold.
func (l *link) removeHold(ctx context.Context, e *entry) error {
	if e.mark == unmarked {
		return l.remove(ctx, e.path)
	}
	failed, err := l.transact(ctx, &zk.DeleteRequest{Path: e.path, Version: -1},
		&zk.DeleteRequest{Path: markOf(e.path), Version: -1})
	if err == nil {
		e.mark = unmarked
	}
	if failed == 1 && errors.Is(err, zk.ErrNoNode) { // the mark is not there
		e.mark = unmarked
		return l.remove(ctx, e.path)
	}
	return err
}

// sweepMark deletes in the background the mark of a hold that has ended in another way than by a release.
func (d *Driver) sweepMark(e *entry) {
	if !e.retains {
		return
	}
	d.spawn(func() { // ends with the answer, with the session or with Close
		// In turn, because an attempt to show the mark may be under way.
		if e.take(d.life) != nil {
			return
		}
		defer e.give()
		if e.mark != unmarked && answered(e.s.clear(markOf(e.path))) {
			e.mark = unmarked
		}
	})
}

// Recalls: a holder learns that another client wants its lock (driver.Recalls). watch.go hears the event.

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
