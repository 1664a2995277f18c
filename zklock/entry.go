package zklock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// entry is what a driver knows of one request: while it is being acquired, and then as long as it is held.
type entry struct {
	key  driver.Key
	id   string
	turn chan struct{} // has one place, taken by whoever works on the request; only they use wait

	// Guarded by Driver.mu; s, path and czxid change only in the turn, too. asOf does, and not while it is held.
	phase  phase
	lost   func(driver.LostReason, error)
	s      *session // in which its node is; nil if it was never sent
	path   string   // of its node; empty if it is not known to have one
	czxid  int64
	tokens int
	since  time.Time // of the hold
	asOf   int64     // the last transaction that was seen before the hold was granted
	ending bool      // it is being released: its node goes by our own doing
	unsure bool      // an earlier release may have been carried out
	wait   *wait     // nil for a hold

	recallable
	showing
}

// phase is how far a request has come.
type phase uint8

const (
	asking phase = iota
	held
	ended
)

// wait is the part of an entry that lasts until it is granted.
type wait struct {
	gone chan struct{} // closed when the request is taken back
	news chan struct{} // has one place; the queue is to be looked at

	// Used in the turn.
	making  *making           // the latest attempt to make its node; nil if there was none in this session
	blocker string            // the node that is in the way and watched; empty if none
	held    *driver.HeldError // who has the lock, as far as was seen when the blocker was
}

// enter returns the entry of a request, or says why it must not be asked.
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
	if e.key != r.Key {
		return nil, driver.ErrConflict
	}
	if e.phase == asking {
		e.lost, e.tokens = r.Lost, tokensFor(r)
		e.wanted, e.retains = r.Wanted, r.Retains
	}
	return e, nil
}

// take waits for the turn to work on e.
func (e *entry) take(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *entry) give() { <-e.turn }

// wake has e, if it waits, look at the queue. The caller holds Driver.mu.
func (e *entry) wake() {
	if e.wait == nil {
		return
	}
	select {
	case e.wait.news <- struct{}{}:
	default: // it has not looked yet
	}
}

// hold turns e into a hold of session s, and reports how that went: it may have been taken back, and the session may
// have ended in the meantime.
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
	}
	e.phase, e.wait, e.since = held, nil, time.Now()
	e.lastAsk = e.czxid // its own request has written to the lock's node too
	s.holds[e] = struct{}{}
	if s.young = append(s.young, e); len(s.young) == 1 {
		s.wakeKeeper()
	}
	return nil
}

// over ends e for good: copies of its requests are refused from now on, with the reason if it was lost.
func (d *Driver) over(e *entry, reason driver.LostReason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(e, reason)
}

// forget is over. The caller holds Driver.mu.
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

// drop forgets a request that was refused: the same may be asked again.
func (d *Driver) drop(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.entries[e.id] == e {
		delete(d.entries, e.id)
	}
}

// lose ends holds that somebody has taken away, and returns what tells their owners. The caller holds Driver.mu, and
// calls that when it does not.
func (d *Driver) lose(lost []*entry, reason driver.LostReason, cause error) (tell func()) {
	var calls []func(driver.LostReason, error)
	for _, e := range lost {
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

// broke ends a hold that somebody else has ended.
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

// tombstones remembers the latest requests that have ended, and how. Whatever the driver itself has sent is settled
// before a request ends, so these are for callers that ask once more.
type tombstones = enginekit.Tombstones[string, driver.LostReason]
