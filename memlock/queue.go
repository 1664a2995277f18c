package memlock

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The reference model: the weighted, leased FIFO queue as a pure state machine. A request comes in here; lock.go judges
// it, drain.go grants what waits, holds.go ends what is held, and ids.go remembers what is over.

// errGone refuses a request whose ID is used up. It matches driver.ErrLost.
var errGone = fmt.Errorf("the request has been released or undone: %w", driver.ErrLost)

// kinds are the locks that acquire understands.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection}

// state is all locks of one store. It has no clock, no goroutine and no mutex: the store's mutex guards it. Every
// method that depends on time is given the instant, and first ends the leases that are over by then. Grants and
// refusals of requests that were waiting collect in settled, which the caller fetches with settle.
type state struct {
	locks   map[driver.Key]*lock // those that are held or waited for
	records map[ref]*record      // the requests that wait or hold
	leases  agenda               // the granted records, by the end of their lease
	graves  graveyard            // the requests that are over
	floor   uint64               // at least the largest token of all locks that are gone
	queued  int                  // how many requests wait, in all queues: without any no timer is needed
	settled []settlement         // answers to waiting requests since settle was last called

	// tells holders that another wants their lock; called when the mutex has been given up
	recalled []func()

	latches latches                  // see latch.go
	conds   map[driver.Key][]*record // the waiters for the condition of a lock, the oldest first

	watched map[driver.Key]int      // how many watches there are of a lock
	changed map[driver.Key]struct{} // of these locks, the ones whose holders have changed in this step
}

// settlement is the answer to a request that had been waiting.
type settlement struct {
	ref ref
	rec *record // the grant, if err is nil
	err error
}

// newState returns an empty state whose tokens are larger than floor.
func newState(floor uint64) *state {
	return &state{
		locks:   make(map[driver.Key]*lock),
		records: make(map[ref]*record),
		graves:  graveyard{tombs: make(map[ref]*tomb)},
		floor:   floor,
		latches: newLatches(),
		conds:   make(map[driver.Key][]*record),
		watched: make(map[driver.Key]int),
		changed: make(map[driver.Key]struct{}),
	}
}

// acquire grants r, queues it, or refuses it. The phase of the record tells the first two apart.
func (s *state) acquire(now time.Time, r *driver.Request) (*record, error) {
	return s.enter(now, demand{Request: r})
}

// enter is acquire, also beside a hold (convert.go).
func (s *state) enter(now time.Time, r demand) (*record, error) {
	s.advance(now)
	at := ref{r.Key, r.ID}
	// A copy comes first: it gets its answer even where a new request would be refused.
	if rec := s.records[at]; rec != nil {
		return s.again(now, rec, r)
	}
	if err := s.refuse(r, nil); err != nil {
		return nil, err
	}
	return s.admit(now, r)
}

// again answers a copy of a request that is known: the same grant, and a lease that lasts no shorter than the copy asks
// for. A Try of a request that waits is refused, because it must not wait.
func (s *state) again(now time.Time, rec *record, r demand) (*record, error) {
	switch {
	case rec.phase == kept:
		return nil, rec.over()
	case rec.phase == held && rec.retained: // a late copy, which lengthens nothing: its client has had the answer
	case rec.phase == held:
		s.extend(rec, now.Add(r.Lease))
	case r.Try:
		return nil, s.locks[r.Key].heldBy(r)
	}
	rec.req.Lost, rec.req.Wanted = r.Lost, r.Wanted
	return rec, nil
}

// requeue releases give and admits r behind all waiters. Nothing happens if either is refused, so everything
// that could refuse r is checked before give is released.
func (s *state) requeue(now time.Time, give *driver.Release, r *driver.Request) (*record, error) {
	s.advance(now)
	if rec := s.records[ref{r.Key, r.ID}]; rec != nil {
		_ = s.release(now, give) // a copy of a step that was done, so give is usually gone
		return s.again(now, rec, demand{Request: r})
	}
	if r.Try {
		return nil, fmt.Errorf("a Try that queues: %w", driver.ErrUnsupported)
	}
	holding, err := s.live(ref{give.Key, give.ID})
	if err != nil && !give.Undo {
		return nil, err
	}
	if give.Keep > 0 && !give.Undo {
		holding = nil // it stays in the way
	}
	if err := s.refuse(demand{Request: r}, holding); err != nil {
		return nil, err
	}
	// The release may let in the other request of the owner, and then it is too late to refuse this one.
	if l := s.locks[r.Key]; l != nil && l.entangles(r) {
		return nil, errStuck(r)
	}
	if err := s.release(now, give); err != nil {
		return nil, err
	}
	return s.admit(now, demand{Request: r})
}

// refuse says what is wrong with r for good, or returns nil. The hold without, if not nil, is about to be released, so
// it does not count.
func (s *state) refuse(r demand, without *record) error {
	if t := s.graves.tombs[ref{r.Key, r.ID}]; t != nil {
		return s.lost(t)
	}
	if err := check(r.Request); err != nil {
		return err
	}
	if r.beside != "" {
		if err := s.checkBeside(r); err != nil {
			return err
		}
	}
	l := s.locks[r.Key]
	if l == nil || l.unused(without) {
		return nil
	}
	if r.Mode != driver.Exclusive && l.sized && l.limit != r.Limit {
		return fmt.Errorf("the limit is %d while it is in use, not %d: %w", l.limit, r.Limit, driver.ErrConflict)
	}
	if v, _ := l.judge(r, without); v == stuck {
		return errStuck(r.Request)
	}
	return nil
}

// check refuses what can never be granted.
func check(r *driver.Request) error {
	switch {
	case !slices.Contains(kinds, r.Kind):
		return fmt.Errorf("locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.ID == "":
		return fmt.Errorf("a request without an ID: %w", driver.ErrUnsupported)
	case r.Lease <= 0:
		return fmt.Errorf("a lease of %v: %w", r.Lease, driver.ErrUnsupported)
	case r.Mode > driver.Upgradeable:
		return fmt.Errorf("mode %d: %w", r.Mode, driver.ErrUnsupported)
	case r.Mode == driver.Exclusive:
		return nil
	case r.Mode == driver.Upgradeable && r.Limit != 0:
		return fmt.Errorf("an upgradeable read of a lock with a limit: %w", driver.ErrUnsupported)
	case r.Limit < 0:
		return fmt.Errorf("the limit %d is below zero: %w", r.Limit, driver.ErrConflict)
	case r.Weight < 1:
		return fmt.Errorf("the weight %d is below one: %w", r.Weight, driver.ErrConflict)
	case r.Limit > 0 && r.Weight > r.Limit:
		return fmt.Errorf("the weight %d is above the limit %d: %w", r.Weight, r.Limit, driver.ErrConflict)
	}
	return nil
}

// errStuck says that r would wait for its own owner.
func errStuck(r *driver.Request) error {
	return fmt.Errorf("the owner %q would wait for a hold of its own: %w", r.Owner, driver.ErrDeadlock)
}

// admit grants r or queues it. Only re-entry and an upgrade overtake requests that wait.
func (s *state) admit(now time.Time, r demand) (*record, error) {
	l := s.locks[r.Key]
	if l == nil {
		l = &lock{key: r.Key, last: s.floor}
		s.locks[r.Key] = l
	}
	free := l.free(r)
	// Also for a Try, which does not get the lock: a holder that may retain it gives it back for the next one.
	if !free {
		s.recall(l)
	}
	if !free && r.Try {
		return nil, l.heldBy(r) // the lock has a holder: without one it would have had no queue and let r in
	}
	rec := &record{entry: entry{ref: ref{r.Key, r.ID}}, req: *r.Request, beside: r.beside, since: now}
	// The driver calls Waiting by itself (wait.go). A long hold must not keep alive what it refers to.
	rec.req.Waiting = nil
	s.records[rec.ref] = rec
	// The first reader or semaphore request that comes in fixes the limit, also if it only waits.
	l.size(r.Request)
	if free {
		s.grant(now, l, rec)
		return rec, nil
	}
	s.queued++
	l.enqueue(rec)
	return rec, nil
}

// grant makes rec a holder, from now for its lease. The token is minted here, in the step that grants. Re-entry gets
// the token and nonce that its owner has.
func (s *state) grant(now time.Time, l *lock, rec *record) {
	v, g := l.judge(rec.demand(), nil)
	// The group first: its block is that of the grant. Without a name every grant is a group of its own.
	if v == queues {
		g = &group{since: now}
		l.groups = append(l.groups, g)
	}
	// An upgrade gets a new token too, above all that were granted while its owner only read.
	if v != reenters {
		g.block = mint(now, l.last, rec.req.Tokens)
		g.block.nonce = rec.req.ID
		l.last = g.block.end()
	}
	g.holds = append(g.holds, rec)
	rec.phase, rec.since, rec.block, rec.group = held, now, g.block, g
	s.leases.add(&rec.entry, now.Add(rec.req.Lease))
	s.change(l.key)
}

// change notes that who holds key has changed, for those who watch it.
func (s *state) change(key driver.Key) {
	if s.watched[key] > 0 {
		s.changed[key] = struct{}{}
	}
}
