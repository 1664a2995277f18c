package etcdlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// holdID names a request.
type holdID struct {
	driver.Key
	id string
}

// entry is a request that this driver has been asked for and not yet been told to give back.
type entry struct {
	d    *Driver
	r    *driver.Request // as asked first
	turn chan struct{}   // has one place, which who acquires takes: one at a time
	over chan struct{}   // closed when ended or released

	// Written by who has the turn, under Driver.mu, which others need for reading.
	session  *session  // nil before the first
	slot     int       // of its key, among those of the session for this lock
	queueKey string    // its key
	revision int64     // that created its key; 0 if that is not known to exist
	view     queueView // as of the latest look
	waited   bool      // somebody was in the way
	asked    int64     // the revision of the hold whose client was called last

	// Guarded by Driver.mu.
	open     int               // how many requests to create its key are under way, or may be since nobody has answered
	granted  bool              // it is in session.holds
	ended    driver.LostReason // why it is over, if it is not by release
	released bool
	vacated  bool              // its key is not its own any more
	called   bool              // it was told that another wants the lock, so there is a key that says so
	wanting  showing           // what its key is to show; see Driver.Renew
	shown    showing           // what it shows, as far as is known
	written  int64             // the revision at which that was written; 0 if not since the key was created
	noticed  driver.LostReason // why it is over, as it turned out while it was being released
	informed bool              // the caller's Lost was called
}

// enter returns the entry of r, which is new if r is.
func (d *Driver) enter(r *driver.Request) (*entry, error) {
	id := holdID{r.Key, r.ID}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e := d.entries[id]; {
	case d.closed:
		return nil, driver.ErrClosed
	case d.gone.Has(id), e != nil && e.released:
		return nil, errReleased(r.Key)
	case e != nil:
		return e, nil
	}
	own := *r
	e := &entry{d: d, r: &own, turn: make(chan struct{}, 1), over: make(chan struct{})}
	d.entries[id] = e
	return e, nil
}

// take waits for the turn.
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

// yield gives the turn to who waits for it.
func (e *entry) yield() { <-e.turn }

// whyOver says how it came to its end, or returns nil.
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

// token is the first of its block, or 0. The caller holds Driver.mu.
func (e *entry) token() uint64 { return uint64(e.revision) * blockSize }

// end ends it for another reason than its release. The caller holds Driver.mu.
func (e *entry) end(reason driver.LostReason) {
	if e.ended == "" && !e.released {
		e.ended = reason
		close(e.over)
	}
	e.loosen()
}

// loosen takes it out of what its session holds. The caller holds Driver.mu.
func (e *entry) loosen() {
	if e.granted {
		delete(e.session.holds, e.revision)
	}
}

// leave notes that a request is to be given back, so that nobody is told of a loss any more. It returns its entry, or
// nil.
func (d *Driver) leave(id holdID) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[id]
	if e == nil {
		return nil
	}
	if !e.released {
		if e.ended == "" {
			close(e.over)
		}
		e.released = true
		e.loosen()
	}
	return e
}

// forget ends the memory of a request that is known to be over, but for its ID.
func (d *Driver) forget(id holdID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone.Bury(id, struct{}{})
	if e := d.entries[id]; e != nil {
		e.vacate()
		delete(d.entries, id)
	}
}

// drop forgets an entry that was refused before it took anything.
func (d *Driver) drop(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := (holdID{e.r.Key, e.r.ID}); d.entries[id] == e && e.open == 0 && e.revision == 0 {
		e.vacate()
		delete(d.entries, id)
	}
}

// tombstones remembers the latest requests that are over, to refuse late copies of them without a word of the servers.
// Copies that this driver itself may have left under way are refused by the servers; see tomb.
type tombstones = enginekit.Tombstones[holdID, struct{}]
