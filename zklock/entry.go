// Entries: what the driver knows of each request. acquire.go and release.go work on them in turn, watch.go finds holds
// and waiters by node, session.go ends the holds of a session.
//
// Two locks order what happens to an entry, as in etcdlock: its turn, for whoever asks the servers about it, and
// Driver.mu for the fields. Here a release takes the turn too. takeBack ends a wait first, so an undo does not wait for
// a grant.

package zklock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// entry is what a driver knows of one request: while it is being acquired, and then while it is held.
type entry struct {
	key driver.Key
	id  string
	// turn holds an element while somebody works on the request: an Acquire, a release, a renewal. Only its owner uses
	// wait and showing.
	turn chan struct{}

	// Driver.mu guards these. s, path and czxid also change only in the turn, so its owner may read them without the
	// mutex. asOf likewise, and it does not change while the lock is held.
	phase  phase
	lost   func(driver.LostReason, error) // the caller's code; called without the mutex
	s      *session                       // the session in which its node is; nil if nothing was sent
	path   string                         // of its node; empty if it is not known to have one
	czxid  int64                          // the transaction that made the node; the token comes from it
	tokens int
	since  time.Time // when it became a hold
	asOf   int64     // the last transaction that was seen before the grant; see guard
	ending bool      // it is being released: its node goes by our own doing
	unsure bool      // an earlier release may have been carried out
	wait   *wait     // nil for a hold

	recallable
	showing
}

// phase is how far a request has come. It only goes forward. That makes late events harmless: a watch that fires for a
// hold that has ended finds ended and tells nobody.
type phase uint8

const (
	asking phase = iota
	held
	ended
)

// wait is the part of an entry that lasts until the grant.
type wait struct {
	gone chan struct{} // closed when the request is taken back
	news chan struct{} // buffer of one: the queue must be looked at

	// Used in the turn only.
	making  *making           // the latest attempt to make its node; nil if there is none in this session
	blocker string            // the path of the watched node that is in the way; empty if none
	held    *driver.HeldError // who had the lock when the blocker was found
}

// enter returns the entry of a request, or says why it must not be asked. A copy of a request that is under way shares
// its entry, and waits for its turn.
func (d *Driver) enter(r *driver.Request) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	if reason, has := d.gone.Epitaph(r.ID); has {
		return nil, lostError(r.Key, reason)
	}
	e := d.entries[r.ID]
	if e == nil {
		e = &entry{
			key: r.Key, id: r.ID, turn: make(chan struct{}, 1),
			wait: &wait{gone: make(chan struct{}), news: make(chan struct{}, 1)},
		}
		d.entries[r.ID] = e
	}
	// An ID names one request for ever. The same for another lock would be a mistake of the caller, and must not be
	// taken for a copy.
	if e.key != r.Key {
		return nil, driver.ErrConflict
	}
	// The latest caller is the one to be told.
	if e.phase == asking {
		e.lost, e.tokens = r.Lost, tokensFor(r)
		e.wanted, e.retains = r.Wanted, r.Retains
	}
	return e, nil
}

// enterTurn returns the entry of r, with its turn. While a copy waits for the turn, the one before it may be refused
// and its entry dropped. A hold in such an entry would be one that no release and no renewal finds, so the copy enters
// anew.
func (d *Driver) enterTurn(ctx context.Context, r *driver.Request) (*entry, error) {
	for {
		e, err := d.enter(r)
		if err != nil {
			return nil, err
		}
		if err := e.take(ctx); err != nil {
			return nil, err
		}
		if d.isCurrent(e) {
			return e, nil
		}
		e.give()
	}
}

// isCurrent reports whether e is still the entry of its request.
func (d *Driver) isCurrent(e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[e.id] == e
}

// take blocks until the turn to work on e is free, or ctx ends. Whoever has it may wait for long; an undo ends such a
// wait by closing wait.gone, and then gets the turn.
func (e *entry) take(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give gives up the turn.
func (e *entry) give() { <-e.turn }

// wake makes e look at the queue, if it waits. The caller holds Driver.mu. One element is enough: a waiter that looks
// after several events sees all of them.
func (e *entry) wake() {
	if e.wait == nil {
		return
	}
	select {
	case e.wait.news <- struct{}{}:
	default: // it has not looked yet
	}
}

// hold makes e a hold of session s. It fails if the request was taken back, or the session has ended in the meantime or
// grants nothing any more.
func (d *Driver) hold(e *entry, s *session) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return driver.ErrClosed
	case e.phase == ended:
		reason, _ := d.gone.Epitaph(e.id)
		return lostError(e.key, reason)
	case s.cause != nil:
		return errOver
	case s.refused.Err() != nil: // admit waits for what becomes of the session
		return errAgain
	}
	e.phase, e.wait, e.since = held, nil, time.Now()
	e.lastAsk = e.czxid // its own request has written to the lock's node too
	s.holds[e] = struct{}{}
	// The keeper sets its timer for the first young hold; the others are in time with that.
	if s.young = append(s.young, e); len(s.young) == 1 {
		s.wakeKeeper()
	}
	return nil
}

// over ends e for good. Copies of its request are refused from now on, with the reason if it was lost.
func (d *Driver) over(e *entry, reason driver.LostReason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(e, reason)
}

// forget is over for a caller that holds Driver.mu.
func (d *Driver) forget(e *entry, reason driver.LostReason) {
	if e.s != nil {
		delete(e.s.holds, e)
		e.s.stopListening(e)
	}
	if e.phase != ended {
		e.phase = ended
		d.gone.Bury(e.id, reason)
	}
	delete(d.entries, e.id)
}

// drop forgets a request that was refused. The same may be asked again, so there is no tombstone. A request that has a
// tombstone would be answered as lost from now on, although it never had anything.
func (d *Driver) drop(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.entries[e.id] == e {
		delete(d.entries, e.id)
	}
}

// lose ends holds that were taken away, and returns a function that tells their owners. The caller holds Driver.mu, and
// calls the function when it does not hold it any more. It forgets before it tells: an owner that releases from within
// its own Lost is answered that the hold is over.
func (d *Driver) lose(lost []*entry, reason driver.LostReason, cause error) (tell func()) {
	var calls []func(driver.LostReason, error)
	for _, e := range lost {
		// A hold that was given back, and a driver that is closed, have nobody to tell.
		if e.phase != held || d.closed {
			continue
		}
		if e.lost != nil {
			calls = append(calls, e.lost)
		}
		d.forget(e, reason)
	}
	return func() {
		for _, call := range calls {
			call(reason, cause)
		}
	}
}

// broke ends a hold that somebody else has ended, and tells its owner.
func (d *Driver) broke(e *entry) {
	d.mu.Lock()
	tell := d.lose([]*entry{e}, driver.LostBroken, nil)
	d.mu.Unlock()
	tell()
	d.sweepMark(e)
}

// lostError says how a hold ended that is not there.
func lostError(key driver.Key, reason driver.LostReason) error {
	if reason == "" {
		reason = driver.LostExpired
	}
	return &driver.LostError{Kind: key.Kind, Name: key.Name, Reason: reason}
}

// tombstones remember the latest requests that have ended, and how. Whatever the driver itself has sent is settled
// before a request ends, so these are for callers that ask once more.
type tombstones = enginekit.Tombstones[string, driver.LostReason]
