package redislock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// entry is what a driver knows of one request: while it is being acquired, and then as long as it is held, or until it
// is undone. It goes with the first release that is asked for, whatever comes of that: who releases may give up, and
// never asks again. There is one for each hold, so it is small. Its fields are guarded by Driver.mu.
type entry struct {
	lost   func(reason driver.LostReason, cause error)
	wanted func() // another wants the lock
	// open says that the outcome of a call for this request is unknown: a copy of it may arrive late, so that its
	// release must leave a tombstone.
	open bool
	sent bool // something of it may be on the server; it is not looked at while it is held
	held bool
	busy bool // an Acquire is under way
	left bool // a release was asked for: nothing may come of what is under way
	// An operator has taken its lock, before the grant was known here.
	broken bool
	wants  bool  // another wants its lock, and has said so before the grant was known here
	marked bool  // see markOf
	urgent bool  // what is pushed to its hold is to be seen at once, see count
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
	wake  chan struct{} // has one place; something below is new
	push  *push         // the latest grant or refusal that was pushed
	again bool          // pushes may have been lost: ask
}

// push is a message that ends a wait.
type push struct {
	grant    reply // as a reply that had granted
	received time.Time
}

// enter returns the entry of a request, or says why the request must not be asked. A copy of a request that is under
// way or held gets an entry of its own that hears no pushes: it learns by asking.
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
	case e.busy || e.held:
		e.sent = true // by the copy
		return &entry{lost: r.Lost, busy: true}, nil
	}
	e.lost, e.wanted, e.busy, e.marked = r.Lost, r.Wanted, true, markOf(r) != unmarked
	return e, nil
}

// hold turns e into a hold's, or tells at once that it is one no more, or that another wants it.
func (d *Driver) hold(id string, e *entry) error {
	err := d.keep(id, e)
	if err == nil && e.broken { // nobody sets it any more
		e.tellBroken()
	}
	if err == nil && e.wants { // likewise
		e.tellWanted()
	}
	return err
}

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
	case d.entries[id] != e: // a copy's
	case e.broken:
		delete(d.entries, id)
	case e.marked && !waited:
		e.urgent = true
		d.count(1)
	}
	return nil
}

// drop takes an entry out. The caller holds Driver.mu.
func (d *Driver) drop(id string, e *entry) {
	delete(d.entries, id)
	if e.urgent {
		d.count(-1)
	}
}

// count counts the holds that may be retained. While there are any, what is pushed has to be seen at once: another may
// want the lock at any time, and nobody here waits for that. A hold that came after a wait is not retained, so it does
// not count: processes that take turns would pay for it at each turn. The caller holds Driver.mu.
func (d *Driver) count(by int) {
	before := d.urgent > 0
	d.urgent += by
	if c, is := d.conn.(Attentive); is && before != (d.urgent > 0) {
		c.Attend(!before)
	}
}

// remembered is how many requests of which nothing was sent a driver remembers.
const remembered = 1024

// leave ends an attempt without a hold, of which a call may have run or not. Unless it ends for good, the
// request is asked again or undone. One of which no call has run has no entry until then, because nothing has to
// be undone; see wasNotSent.
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

// wasNotSent reports, for an undo, that nothing of the request has ever got to the server. In an outage that spares a
// question that would be asked again and again.
func (d *Driver) wasNotSent(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, is := d.unsent[id]
	delete(d.unsent, id)
	return is
}

// over forgets the entry of a request that has been released, and refuses copies of it.
func (d *Driver) over(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(id)
	d.gone.Bury(id, struct{}{})
}

// unconfirmed forgets the entry of a request whose release has brought no answer. The caller may never ask
// again, so nothing is kept for that: a release that is asked again refuses late copies of the acquire, as for a
// request that nobody knows.
func (d *Driver) unconfirmed(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(id)
}

// forget takes an entry out, and lets nothing come of an acquire that is under way. The caller holds Driver.mu.
func (d *Driver) forget(id string) {
	if e := d.entries[id]; e != nil {
		e.left = true
		d.drop(id, e)
	}
}

// isOpen reports whether a copy of the request may be under way. A request that this driver does not know is another's,
// or of a former life: nobody knows.
func (d *Driver) isOpen(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[id]
	return e == nil || e.open
}

// opened notes that the outcome of a call is unknown.
func (d *Driver) opened(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.open = true
}

// hasOpened reports whether an earlier attempt, or this one, has left a call whose outcome is unknown.
func (d *Driver) hasOpened(e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return e.open
}

// news waits until something is pushed to the attempt, after at most t, and returns it, or nil if it is time to ask.
func (a *attempt) news(ctx context.Context, t time.Duration) (*push, error) {
	d, until := a.d, time.Now().Add(t)
	for {
		d.mu.Lock()
		w := a.e.waiting()
		p, again := w.push, w.again
		w.push, w.again = nil, false
		d.mu.Unlock()
		if p != nil || again {
			return p, nil
		}
		heard, err := a.listenFor(ctx, w.wake, until)
		if err != nil || !heard {
			return nil, err
		}
	}
}

// listenFor waits until w is roused: if the connections can make use of the goroutine, in a read. It reports
// false at the instant until.
func (a *attempt) listenFor(ctx context.Context, wake <-chan struct{}, until time.Time) (heard bool, err error) {
	if reader, lends := a.d.conn.(Awaiter); lends {
		heard, err = reader.Await(ctx, a.slot, wake, until)
		switch {
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

// tombstones remembers the latest requests that were released. A copy that the driver has sent is refused by the server
// (see entry.open); these are for callers that send one.
type tombstones = enginekit.Tombstones[string, struct{}]
