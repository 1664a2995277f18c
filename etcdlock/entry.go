// Entries: what the driver knows of each request. acquire.go works on them in turn, release.go ends them, session.go
// and notices.go end those of a session.
//
// An entry begins with the first Acquire of an ID and ends with forget or drop. Two locks order what happens to it. The
// turn lets one Acquire at a time talk to the servers about the request; Driver.mu guards the fields for moments.
// Release takes no turn: it must be able to end a request whose Acquire waits, and does so by closing over.

package etcdlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// holdID names a request: the same ID on two locks is two requests.
type holdID struct {
	driver.Key
	id string
}

// entry is a request that this driver was asked for and has not been told to give back.
type entry struct {
	d    *Driver
	r    *driver.Request // as it was asked first; constant
	turn chan struct{}   // buffer of one, taken by an Acquire while it works: one at a time
	over chan struct{}   // closed when it has ended or was released

	// Written by the owner of the turn, under Driver.mu, which all others need for reading.
	session  *session  // nil before the first
	slot     int       // the number in its key, among the keys of the session for this lock
	queueKey string    // its key; it keeps the name when the key was given up
	revision int64     // at which its key was created; 0 if none is known to exist
	view     queueView // what the queue meant at the latest look
	waited   bool      // something was in the way
	asked    int64     // the revision of the hold whose client was called last

	// Driver.mu guards these. open counts and does not only mark, because several Acquires may each have given up
	// before an answer, one after the other. While it is not 0, the slot stays reserved and an undo writes a tomb.
	open     int               // how many creations of its key are under way, or may be, since nobody has answered
	granted  bool              // it is in session.holds
	ended    driver.LostReason // why it is over, if not by release
	released bool              // a release was asked for
	vacated  bool              // another request may use its key
	called   bool              // it was told that another wants the lock, so there is a key that says so
	// Renewals may overtake each other. wanting is the latest that was asked for, and shown the latest that was
	// answered, so a late one of either kind changes nothing.
	wanting  showing // what its key must show; see Driver.Renew
	shown    showing // what its key shows, as far as is known
	written  int64   // the revision at which that was written; 0 if not since its creation
	broken   bool    // an operator broke it, as was seen while it was being released
	informed bool    // the caller's Lost was called
}

// enter returns the entry of r, which is new if r is. A copy of a request shares its entry and waits for its turn.
func (d *Driver) enter(r *driver.Request) (*entry, error) {
	id := holdID{r.Key, r.ID}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := d.entries[id]; {
	case d.closed:
		return nil, driver.ErrClosed
	// A request that was released is never granted again, also if a copy of it comes late.
	case d.gone.Has(id), e != nil && e.released:
		return nil, errReleased(r.Key)
	case e != nil:
		return e, nil
	}
	// The entry outlives the call, so it keeps a copy of the request.
	own := *r
	e := &entry{d: d, r: &own, turn: make(chan struct{}, 1), over: make(chan struct{})}
	d.entries[id] = e
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
			return nil, d.failure(ctx, err)
		}
		if d.isCurrent(e) {
			return e, nil
		}
		e.yield()
	}
}

// isCurrent reports whether e is still the entry of its request.
func (d *Driver) isCurrent(e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[holdID{e.r.Key, e.r.ID}] == e
}

// take blocks until the turn is free, the request is over, or ctx ends.
func (e *entry) take(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-e.over:
		return e.whyOver()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mayBeMade reports whether an earlier Acquire has left a creation of the key that nobody has answered.
func (e *entry) mayBeMade() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.open > 0
}

// yield gives up the turn.
func (e *entry) yield() { <-e.turn }

// whyOver says how the request came to its end, or returns nil.
func (e *entry) whyOver() error {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	switch {
	case e.d.closed:
		return driver.ErrClosed
	case e.released:
		return errReleased(e.r.Key)
	case e.ended != "":
		return lost(e.r.Key, e.token(), e.ended, nil)
	}
	return nil
}

// token is the first token of its block, or 0. The caller holds Driver.mu.
func (e *entry) token() uint64 { return uint64(e.revision) * blockSize }

// end ends the request for another reason than its release. The first reason counts. The caller holds Driver.mu. What
// comes later is a consequence: a session that is lost also loses its keys, and would be reported twice.
func (e *entry) end(reason driver.LostReason) {
	if e.ended == "" && !e.released {
		e.ended = reason
		close(e.over)
	}
	e.loosen()
}

// loosen takes the request out of what its session holds. The caller holds Driver.mu. What the session does not hold is
// neither audited nor told of the session's end.
func (e *entry) loosen() {
	if e.granted {
		delete(e.session.holds, e.revision)
	}
}

// leave records that a request must be given back, so that nobody is told of a loss any more. It returns its entry, or
// nil.
func (d *Driver) leave(id holdID) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[id]
	if e == nil {
		return nil
	}
	if !e.released {
		// over wakes the attempt that waits. It is closed once: a loss has closed it already.
		if e.ended == "" {
			close(e.over)
		}
		e.released = true
		e.loosen()
	}
	return e
}

// forget ends the memory of a request that is known to be over, except for its ID, which is refused from now on. Only a
// request that is over for certain is forgotten. One whose release had no clear answer keeps its entry, so that the
// next release knows the revision and need not search the queue.
func (d *Driver) forget(id holdID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone.Bury(id, struct{}{})
	if e := d.entries[id]; e != nil {
		e.vacate()
		delete(d.entries, id)
	}
}

// drop forgets an entry that was refused before it took anything. The same request may be asked again. An entry with a
// key, or with a creation that nobody has answered, stays: the undo that follows needs its slot, its session and its
// revision.
func (d *Driver) drop(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := (holdID{e.r.Key, e.r.ID}); d.entries[id] == e && e.open == 0 && e.revision == 0 {
		e.vacate()
		delete(d.entries, id)
	}
}

// tombstones remember the latest requests that are over, to refuse late copies of them without asking the servers.
// Copies that this driver itself may have left under way are refused by the servers; see tomb.
type tombstones = enginekit.Tombstones[holdID, struct{}]

// The numbers in a session's keys, which are used again and again (see names.queueKey). acquire.go takes one, vacate
// gives it back.
//
// What the names of keys must guarantee: two requests of a session never share one at a time, and a name is not given
// to the next request while a creation for the last one may still arrive. The create revision tells the uses of one
// name apart. No state on the servers is involved: the session's number in the key keeps clients apart.

// slots are the numbers in the keys that a session has for one lock. A mutex needs two, because a hold can be given
// back and asked for again in one step; more are for requests that wait at the same time. Driver.mu guards them.
type slots struct {
	free []int
	next int // the smallest that was never used
	used int // how many are in use, including those that are never given back
}

// occupy gives e a key of s that no other request has. The caller holds Driver.mu.
func (s *session) occupy(e *entry) {
	all := s.slots[e.r.Key]
	if all == nil {
		all = new(slots)
		s.slots[e.r.Key] = all
	}
	all.used++
	// A key that was used before is used again; see queueKey for why. A new number is taken only if none is free, so a
	// lock has as few keys as it ever needed at once.
	if n := len(all.free); n > 0 {
		e.slot, all.free = all.free[n-1], all.free[:n-1]
	} else {
		e.slot = all.next
		all.next++
	}
	e.session, e.queueKey, e.vacated = s, s.d.names.queueKey(e.r, s.id, e.slot), false
}

// vacate gives e's key back, if it has one. If a request to create the key may still be under way, it stays reserved
// until the session ends: the tomb refuses that request, but not for ever. The caller holds Driver.mu.
func (e *entry) vacate() {
	s := e.session
	if s == nil || e.vacated || e.open > 0 {
		return
	}
	e.vacated = true // the name stays, for a waiter behind it that learns of its end
	all := s.slots[e.r.Key]
	// With the last one the whole record goes, or a client would remember every lock that it has ever used in this
	// session. The next use begins at 0 again, at keys that the servers know already.
	all.used--
	all.free = append(all.free, e.slot)
	if all.used == 0 {
		delete(s.slots, e.r.Key)
	}
}
