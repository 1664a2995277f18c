// Requests, from Acquire until nothing is left of them. lock_state.go says what each does next, ask.go and wait.go do
// it, release.go ends it.

package sqlsession

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// phase is how far a request has come. It only goes forward, except that moveOn takes a request back to asking.
type phase uint8

const (
	// asking: a shared connection tries for it, or another request for the same lock does and this one is in line.
	asking    phase = iota
	waiting         // a goroutine waits for it, see wait.go
	held            // granted
	releasing       // being given back
	doubt           // its connection has ended, and the server may not know that yet
	over            // nothing is left of it
)

// Entry is one request, from Acquire until it is given back. What happens to it in the server goes on whatever becomes
// of the caller. A caller that gives up leaves it until it is undone, as the contract of [driver.Driver] says.
type Entry struct {
	Request driver.Request // what was asked for; Waiting and Lost may change, under Core.mu

	d    *Core
	stop chan struct{} // closed when a wait must end

	// Core.mu guards these.
	phase    phase
	probe    int           // how many numbers were found to belong to other names
	lock     LockID        // changes with probe, and only while e is asked for
	untried  bool          // the wait under way began without a try
	hinted   time.Duration // when that was decided, since Core.born; 0 if never
	refused  bool          // a try has said that the lock is held
	ending   bool          // undone, or the core is closed: a grant is given back
	c        *Conn         // the connection on which it is asked for, waits, or is held
	token    uint64        // the first of its block; 0 until granted
	tokens   int
	err      error             // why it was not granted; set before settled is closed
	told     *driver.HeldError // who was in the way, as the caller was told last
	seen     bool              // the server has said that
	credited bool              // a Release has returned that it ended the hold
	ended    time.Duration     // when a Release began, since Core.born
	denied   error             // the server refuses to take it back, and has for a while
	denial   chan struct{}     // closed then; nil unless a Release waits
	epitaph  epitaph           // how it ended; zero while it has not

	settled chan struct{} // closed when it was granted or refused
	over    chan struct{} // closed when nothing is left of it
}

// newEntry returns an entry for r with its first number.
func (d *Core) newEntry(r *driver.Request) *Entry {
	return &Entry{
		d: d, Request: *r, lock: d.dialect.LockOf(r.Key, 0), stop: make(chan struct{}),
		settled: make(chan struct{}), over: make(chan struct{}),
	}
}

// settle gives the caller its answer. The first answer counts. The caller of settle holds Core.mu.
func (e *Entry) settle(err error) {
	if !e.isSettled() {
		e.err = err
		close(e.settled)
	}
}

// isSettled reports whether the caller has its answer.
func (e *Entry) isSettled() bool {
	select {
	case <-e.settled:
		return true
	default:
		return false
	}
}

// Tell tells the caller who is in the way, as far as this process knows: it calls Request.Waiting, unless the caller
// was told the same or does not wait any more. It is for what the engine infers; what the server says is Seen.
func (e *Entry) Tell(h *driver.HeldError) {
	e.d.mu.Lock()
	if e.told != nil && *e.told == *h || e.ending || e.phase > waiting { // e.phase > waiting: a look came too late
		e.d.mu.Unlock()
		return
	}
	e.told = h
	waiting := e.Request.Waiting
	// Without the mutex: it is the caller's code.
	e.d.mu.Unlock()
	if waiting != nil {
		waiting(h)
	}
}

// grant is what the caller gets. The session's last sign of life bounds the trust, not the instant of this request. The
// caller holds Core.mu.
func (e *Entry) grant() driver.Grant {
	return driver.Grant{
		Token: e.token, Tokens: e.tokens, Nonce: e.Request.ID, // an ID is never used twice
		Sent: e.c.Confirmed(), Lease: e.d.config.Timeout, Session: e.c,
	}
}

// heldError describes a hold of this process to other requests of it. The caller holds Core.mu.
func (e *Entry) heldError() *driver.HeldError {
	return &driver.HeldError{
		Kind: e.Request.Kind, Name: e.Request.Name, Owner: e.Request.Owner,
		Client: e.Request.Client, Token: e.token,
	}
}

// Lock returns what the server knows the lock by. It may change between two statements for e, when its number belongs
// to another lock.
func (e *Entry) Lock() LockID {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.lock
}

// Stopped reports whether the request is not wanted any more: it was undone, or the core is closed.
func (e *Entry) Stopped() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

// Seen is Tell with what the server says. Afterwards HasSeen reports true.
func (e *Entry) Seen(h *driver.HeldError) {
	e.Tell(h)
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.seen = true
}

// HasSeen reports whether the caller has been told what the server says about the holder.
func (e *Entry) HasSeen() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.seen
}

// Untried reports whether the wait under way began without a try, because of [Core.Hint].
func (e *Entry) Untried() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.untried
}

// Refused reports whether a try has said that the lock is held, and the wait has brought no answer yet.
func (e *Entry) Refused() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.refused && e.told == nil
}

// tellIfHeld tells a caller whose context ends that the lock is held, if it was when it was tried for, or a moment ago.
// Without it the caller would get a plain timeout.
func (e *Entry) tellIfHeld() {
	d := e.d
	d.mu.Lock()
	tell := e.told == nil && e.phase == waiting && (e.refused || e.hinted != 0 && d.Clock()-e.hinted < d.config.Recent)
	d.mu.Unlock()
	if tell {
		e.Tell(e.HeldBySomebody())
	}
}

// HeldBySomebody returns an error that says no more than that the lock is held.
func (e *Entry) HeldBySomebody() *driver.HeldError {
	return &driver.HeldError{Kind: e.Request.Kind, Name: e.Request.Name}
}

func (e *Entry) isShared() bool { return e.Request.Mode == driver.Shared }

// Acquire implements [driver.Driver]. It tries for the lock on a shared connection, and if it is held waits for it in
// the server on a connection of the pool. It blocks until the request is settled or ctx ends; after ctx has ended the
// request goes on until it is undone by Release. See the package documentation for the costs.
func (d *Core) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	e, err := d.enter(ctx, r)
	if err != nil {
		return driver.Grant{}, err
	}
	// It nearly always is, if the question was asked in this goroutine. Then nothing has to watch ctx.
	if e.isSettled() {
		return d.answer(e)
	}
	select {
	case <-e.settled:
		return d.answer(e)
	case <-ctx.Done():
		e.tellIfHeld()
		return driver.Grant{}, ctx.Err()
	}
}

// answer is the result of a request that is settled.
func (d *Core) answer(e *Entry) (driver.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.err != nil:
		return driver.Grant{}, e.err
	case e.phase != held: // it ended before anybody got it
		return driver.Grant{}, e.lostError()
	}
	return e.grant(), nil
}

// enter finds the entry of a request, or makes one and takes its first step.
func (d *Core) enter(ctx context.Context, r *driver.Request) (*Entry, error) {
	if err := d.dialect.Supports(r); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	e, next, err := d.join(ctx, r)
	var told *driver.HeldError
	if e != nil {
		told = e.told
	}
	d.mu.Unlock()
	// Without the mutex, because next may run a statement here.
	if next != nil {
		next()
	} else if told != nil && r.Waiting != nil {
		r.Waiting(told)
	}
	return e, err
}

// join is enter under Core.mu. It returns what must be done without it. A copy of a request joins the entry that is
// there.
func (d *Core) join(ctx context.Context, r *driver.Request) (e *Entry, next func(), err error) {
	if d.closed {
		return nil, nil, driver.ErrClosed
	}
	if e := d.entries[r.ID]; e != nil {
		switch {
		case e.Request.Key != r.Key || e.ending || e.phase == releasing:
			return nil, nil, gone(r.Key)
		case e.phase == doubt:
			return nil, nil, d.Unavailable("acquire", r.Name, ErrLost)
		}
		if r.Waiting != nil {
			e.Request.Waiting = r.Waiting
		}
		if r.Lost != nil {
			e.Request.Lost = r.Lost
		}
		return e, nil, nil
	}
	if d.gone.Has(r.ID) {
		return nil, nil, gone(r.Key)
	}
	e = d.newEntry(r)
	d.entries[r.ID] = e
	next = d.route(e)
	if p := d.lockStates[e.lock]; p != nil && p.asker == e { // route has made it the asker, so next is startAsking
		next = func() { e.askInline(ctx) }
	}
	return e, next, nil
}
