package memlock

import (
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What makes the state machine (queue.go) run by itself: the mutex, the timer that ends leases on which somebody waits,
// and the calls that wait for an answer (wait.go).

// store is what the clients of one name space share.
type store struct {
	// Guards everything below, and every Driver's closed. Nothing blocks and no function of the caller's runs while it
	// is held.
	mu      sync.Mutex
	q       *state
	calls   map[ref][]*call // the goroutines that wait, by request: copies of one wait side by side
	watches map[*watch]struct{}
	clients int // open ones; with the last the store is forgotten

	// Ends the lease on which somebody may be waiting. There is one timer for the whole store, and only while somebody
	// waits. It may fire too early, when that lease was renewed or released, but never too late.
	timer *time.Timer
	fires time.Time // when timer fires

	empty func() // called without mu when the last client has closed; may be nil
}

// newStore returns a store without clients, whose tokens are larger than floor.
func newStore(floor uint64) *store {
	return &store{q: newState(floor), calls: make(map[ref][]*call), watches: make(map[*watch]struct{})}
}

// open returns a new client.
func (s *store) open() *Driver {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients++
	return &Driver{store: s}
}

// close ends d and its waits. Its holds stay until their leases end, as those of a process that has died.
func (s *store) close(d *Driver) {
	s.mu.Lock()
	if d.closed {
		s.mu.Unlock()
		return
	}
	d.closed = true
	s.clients--
	last := s.clients == 0
	// Before mu is given up: no wait of d may be granted a lock after this.
	s.hangUp(d)
	s.closeWatches(d)
	s.mu.Unlock()
	// Without mu: empty takes the registry's mutex, which comes before mu. A client that is opened in between keeps the
	// store; forget looks again.
	if last && s.empty != nil {
		s.empty()
	}
}

// hangUp ends d's waits, and withdraws the requests for which no other client waits.
func (s *store) hangUp(d *Driver) {
	var alone []*record
	for at, calls := range s.calls {
		for _, c := range calls {
			if c.from == d {
				c.settle(driver.Grant{}, driver.ErrClosed)
			}
		}
		if rec := s.leave(at, func(c *call) bool { return c.from == d }); rec != nil {
			alone = append(alone, rec)
		}
	}
	// All at once, so that none of them is granted what another of them leaves.
	s.q.withdraw(time.Now(), alone...)
	s.finish()
}

// finish ends every step: it answers the calls that the step has settled, tells others of the change, and sets the
// timer. It must run before mu is given up, or an answer would be late by a step.
func (s *store) finish() {
	settled := s.q.settle()
	for _, done := range settled {
		for _, c := range s.calls[done.ref] {
			if done.err != nil {
				c.settle(driver.Grant{}, done.err)
				continue
			}
			c.settle(grantOf(done.rec, done.rec.req.Lease, done.rec.since), nil) // since is when the store granted it
		}
		delete(s.calls, done.ref)
	}
	// Only after all answers: a call that has got its own must not be told of a holder.
	for i, done := range settled {
		if i+1 == len(settled) || settled[i+1].ref.key != done.ref.key { // once for all that were let in together
			s.spread(done.ref.key)
		}
	}
	s.tellWatches()
	s.arm()
}

// unlock gives mu up after a step, and then tells the holders whose locks others want: those functions call the driver.
func (s *store) unlock() {
	recalled := s.q.recalled
	s.q.recalled = nil
	s.mu.Unlock()
	for _, tell := range recalled {
		tell()
	}
}

// spread tells the first waiters of a lock who is in their way now.
func (s *store) spread(key driver.Key) {
	l := s.q.locks[key]
	if l == nil {
		return
	}
	for _, rec := range l.queue[:min(told, len(l.queue))] {
		for _, c := range s.calls[rec.ref] {
			c.notify(l.heldBy(rec.demand()))
		}
	}
}

// arm sets the timer to the next end of a lease on which somebody may be waiting.
func (s *store) arm() {
	next, ok := s.q.next()
	if !ok {
		s.disarm()
		return
	}
	if s.timer != nil && !next.Before(s.fires) {
		return // it fires in time and is then set anew: cheaper than moving it at every release
	}
	s.disarm()
	// fired is given the address, because the timer has no value yet when its function is made. It reads it under mu,
	// which arm's caller holds until the value is there.
	var own *time.Timer
	own = time.AfterFunc(time.Until(next), func() { s.fired(&own) })
	s.timer, s.fires = own, next
}

// disarm stops the timer. One that has fired already, and waits for mu, finds that it is not the store's any more.
func (s *store) disarm() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}

// fired ends the leases that are over. It runs in the timer's goroutine and does not block.
func (s *store) fired(own **time.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != *own {
		return // stopped too late: another has been set, or nobody waits any more
	}
	s.timer = nil
	s.q.advance(time.Now())
	s.finish()
}
