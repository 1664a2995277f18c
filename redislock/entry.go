// The entries: what the driver knows of each request from before it is sent until it is released. acquire.go makes and
// ends them, notices.go finds them by ID when something is pushed, release.go takes them out.

package redislock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// entry is what a driver knows of one request: while it is being acquired, and then while it is held or until it is
// undone. The first release takes it out, whatever its outcome: a caller that releases may give up and never ask again.
// There is one entry for each hold, so it is small; what only a wait needs is in wait. Driver.mu guards its fields.
type entry struct {
	lost   func(reason driver.LostReason, cause error) // called without Driver.mu; nil if nobody wants to know
	wanted func()                                      // called without Driver.mu when another client wants the lock
	// open says that a call for this request has an unknown outcome. A copy of it may arrive late, so the release must
	// leave a tombstone.
	open bool
	sent bool // something of it may be on the server; not read while it is held
	held bool // the grant was taken in; until then pushes wake the waiter
	busy bool // an Acquire is under way
	// copied: the caller has asked for a copy of this request, which is under way or has got what it asked for.
	copied bool
	left   bool // a release was asked for: nothing may come of what is under way
	// broken: an operator has taken the lock before the grant was known here.
	broken bool
	// wants: another client has asked for the lock before the grant was known here.
	wants  bool
	marked bool  // see markOf
	urgent bool  // what is pushed to its hold must be seen at once, see count
	wait   *wait // nil unless something is pushed or waited for
}

// waiting returns the part of e for its wait. The caller holds Driver.mu.
func (e *entry) waiting() *wait {
	if e.wait == nil {
		e.wait = &wait{wake: make(chan struct{}, 1)}
	}
	return e.wait
}

// wait is the part of an entry that lasts as long as the request is in the queue.
type wait struct {
	wake  chan struct{} // buffer of one: a pending signal says that something below is new
	push  *push         // the latest grant or refusal that was pushed
	again bool          // pushes may have been lost, so ask the server
}

// push is a message that ends a wait.
type push struct {
	grant    reply     // in the form of a reply that has granted
	received time.Time // our clock, when the push was read
}

// enter returns the entry of a request, or why the request must not be asked. A copy of a request that is under way or
// held gets an entry of its own, which is in no map and gets no pushes. The copy learns by asking, which the server
// answers like the original.
func (d *Driver) enter(r *driver.Request) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed() {
		return nil, driver.ErrClosed
	}
	if d.gone.Has(r.ID) {
		return nil, errGone(r.Key)
	}
	d.client, d.marks = r.Client, d.marks || markOf(r) != unmarked
	delete(d.unsent, r.ID)
	e := d.entries[r.ID]
	switch {
	case e == nil:
		e = &entry{busy: true}
		d.entries[r.ID] = e
	case e.left: // its release is under way, and leaves no tombstone for a copy that comes as late as this
		return nil, errGone(r.Key)
	case e.busy || e.held:
		e.open, e.sent, e.copied = true, true, true // by the copy, which the server may hear after the release
		return &entry{lost: r.Lost, busy: true}, nil
	}
	e.lost, e.wanted, e.busy, e.marked = r.Lost, r.Wanted, true, markOf(r) != unmarked
	return e, nil
}

// wasWithdrawn reports whether a release of the request was asked for.
func (d *Driver) wasWithdrawn(id string, e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return e.left || d.gone.Has(id)
}

// hold makes e the entry of a hold. If the hold was broken or wanted before its grant was known here, it tells so at
// once, outside of Driver.mu because it calls the caller's code.
func (d *Driver) hold(id string, e *entry) error {
	err := d.keep(id, e)
	if err == nil && e.broken { // nothing sets it any more, so it may be read without the lock
		e.tellBroken()
	}
	if err == nil && e.wants { // likewise
		e.tellWanted()
	}
	return err
}

// keep is the part of hold under Driver.mu. It returns driver.ErrLost if the request was released meanwhile: the late
// grant must not revive what its caller has given up.
func (d *Driver) keep(id string, e *entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isClosed() {
		return driver.ErrClosed
	}
	if e.left || d.gone.Has(id) { // released while it was being acquired
		return driver.ErrLost
	}
	waited := e.wait != nil
	e.wait, e.busy, e.held = nil, false, true
	switch {
	case d.entries[id] != e: // a copy's; the original's entry is in the map
	case e.broken:
		delete(d.entries, id)
	case e.marked && !waited:
		e.urgent = true
		d.count(1)
	}
	return nil
}

// drop takes an entry out of the map and of the count. The caller holds Driver.mu.
func (d *Driver) drop(id string, e *entry) {
	delete(d.entries, id)
	if e.urgent {
		d.count(-1)
	}
}

// count counts the holds that may be retained. While there are any, a push has to be read at once: another client may
// want the lock at any time, and no goroutine here waits for that. A hold that came after a wait is not retained, so it
// does not count: otherwise processes that take turns would pay for it at each turn. The caller holds Driver.mu.
func (d *Driver) count(by int) {
	before := d.urgent > 0
	d.urgent += by
	if c, is := d.conn.(Attentive); is && before != (d.urgent > 0) {
		c.Attend(!before)
	}
}

// remembered bounds Driver.unsent, which grows during an outage by one for each failed attempt.
const remembered = 1024

// leave ends an attempt without a hold. ran says that a call of it may have run. Unless the attempt ended for good, the
// caller asks again or undoes it. A request of which no call has run keeps no entry until then, since there is nothing
// to undo; see wasNotSent.
func (d *Driver) leave(id string, e *entry, ran, forGood bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.busy, e.sent = false, e.sent || ran
	if d.entries[id] != e || !forGood && e.sent {
		return
	}
	delete(d.entries, id)
	if forGood {
		return
	}
	if d.unsent == nil || len(d.unsent) >= remembered {
		d.unsent = make(map[string]struct{}) // those before are undone by asking the server
	}
	d.unsent[id] = struct{}{}
}

// wasNotSent reports, for an undo, that nothing of the request has ever reached a server. During an outage this saves a
// question that would be repeated again and again. It is asked once: the ID is forgotten.
func (d *Driver) wasNotSent(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, is := d.unsent[id]
	delete(d.unsent, id)
	return is
}

// buryRequest forgets the entry of a request whose release is confirmed, and refuses later copies of the request.
func (d *Driver) buryRequest(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(id)
	d.gone.Bury(id, struct{}{})
}

// unconfirmed forgets the entry of a request whose release brought no answer. The caller may never ask again, so
// nothing is kept for that. If it does, the driver does not know the request and treats it as open (see leaving): that
// release leaves a tombstone against late copies.
func (d *Driver) unconfirmed(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(id)
}

// forget takes an entry out, and marks it so that an acquire still under way cannot become a hold. The caller holds
// Driver.mu.
func (d *Driver) forget(id string) {
	if e := d.entries[id]; e != nil {
		e.left = true
		d.drop(id, e)
	}
}

// leaving records that a release is about to be sent, so that enter refuses copies from then on. It reports whether a
// copy of the request may be under way. It does not know for a request without an entry, which is another driver's or
// from before a restart, and says yes.
func (d *Driver) leaving(id string) (open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[id]
	if e == nil {
		return true
	}
	e.left = true
	return e.open
}

// markOutcomeUnknown records that the outcome of a call is unknown. It is never reset: the release needs it.
func (d *Driver) markOutcomeUnknown(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.open = true
}

// outcomeUnknown reports whether an earlier attempt, or this one, has left a call whose outcome is unknown.
func (d *Driver) outcomeUnknown(e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return e.open
}

// news waits until something is pushed to the attempt, for at most t. It returns the push, or nil when it is time to
// ask. The loop takes what is new under Driver.mu first, so a push between two waits is not missed; wake is only the
// signal to look.
func (a *attempt) news(ctx context.Context, t time.Duration) (*push, error) {
	d, until := a.d, time.Now().Add(t)
	for {
		d.mu.Lock()
		w := a.e.waiting()
		p, again := w.push, w.again
		w.push, w.again = nil, false
		d.mu.Unlock()
		// An order to ask again ends the wait like a push, with none.
		if p != nil || again {
			return p, nil
		}
		heard, err := a.listenFor(ctx, w.wake, until)
		if err != nil || !heard {
			return nil, err
		}
	}
}

// listenFor waits for a signal on wake. If the connection can use the goroutine, it waits in a read, so that the push
// arrives in the goroutine that needs it (docs/rationale.md, Our own connection). It reports false at the instant
// until.
func (a *attempt) listenFor(ctx context.Context, wake <-chan struct{}, until time.Time) (heard bool, err error) {
	if reader, lends := a.d.conn.(Awaiter); lends {
		heard, err = reader.Await(ctx, a.slot, wake, until)
		switch {
		// Any other error is no reason to end the wait: it goes on below, without the connection.
		case a.d.isClosed():
			return false, driver.ErrClosed
		case err == nil || ctx.Err() != nil:
			return heard, err
		}
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-wake:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-a.d.closing:
		return false, driver.ErrClosed
	}
}

// tombstones remember the latest requests that were released here. Late copies that this driver has sent are refused by
// the server (see entry.open); these refuse copies that a caller sends.
type tombstones = enginekit.Tombstones[string, struct{}]
