package memlock

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// errGone refuses a request whose ID is used up. It matches driver.ErrLost.
var errGone = fmt.Errorf("the request has been released or undone: %w", driver.ErrLost)

// kinds are the locks that acquire understands.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection}

// state is the reference model: all locks of one store as a pure state machine. It has no clock, no goroutine and no
// mutex; every method that depends on time is told what time it is, and first ends the leases that are over by then.
// Grants and refusals of requests that were waiting collect in settled, for the caller to fetch with settle.
type state struct {
	locks   map[driver.Key]*lock
	records map[ref]*record
	leases  agenda // the granted records, by the end of their lease
	graves  graveyard
	floor   uint64 // no token of a lock that is gone was larger
	queued  int
	settled []settlement

	recalled []func() // tells holders that another wants their lock; for who has given the mutex up

	latches latches
	conds   map[driver.Key][]*record // who waits for the condition of a lock, who came first at the beginning

	watched map[driver.Key]int      // how many want to know of changes of its holders
	changed map[driver.Key]struct{} // of these, those that have changed
}

// settlement is the answer to a request that had been waiting.
type settlement struct {
	ref ref
	rec *record // the grant, if err is nil
	err error
}

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

// acquire grants r, queues it, or refuses it. The phase of the record tells which of the first two.
func (s *state) acquire(now time.Time, r *driver.Request) (*record, error) {
	return s.enter(now, demand{Request: r})
}

// enter is acquire, also beside a hold.
func (s *state) enter(now time.Time, r demand) (*record, error) {
	s.advance(now)
	at := ref{r.Key, r.ID}
	if rec := s.records[at]; rec != nil {
		return s.again(now, rec, r)
	}
	if err := s.refuse(r, nil); err != nil {
		return nil, err
	}
	return s.admit(now, r)
}

// again answers a copy of a request that is known.
func (s *state) again(now time.Time, rec *record, r demand) (*record, error) {
	switch {
	case rec.phase == kept:
		return nil, rec.over()
	case rec.phase == held && rec.retained: // a late copy: its client has long had the answer
	case rec.phase == held:
		s.extend(rec, now.Add(r.Lease))
	case r.Try:
		return nil, s.locks[r.Key].heldBy(r)
	}
	rec.req.Lost, rec.req.Wanted = r.Lost, r.Wanted
	return rec, nil
}

// requeue releases give and admits r behind everybody who waits. Nothing happens if either is refused.
func (s *state) requeue(now time.Time, give *driver.Release, r *driver.Request) (*record, error) {
	s.advance(now)
	if rec := s.records[ref{r.Key, r.ID}]; rec != nil {
		_ = s.release(now, give) // a copy of a step that was done: that give is gone by now is no news
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
		holding = nil // it goes on being in the way
	}
	if err := s.refuse(demand{Request: r}, holding); err != nil {
		return nil, err
	}
	if l := s.locks[r.Key]; l != nil && l.entangles(r) {
		return nil, errStuck(r) // the release may be what lets in the other, and then it is too late to refuse
	}
	if err := s.release(now, give); err != nil {
		return nil, err
	}
	return s.admit(now, demand{Request: r})
}

// refuse says what is wrong with r for good. The hold without, if not nil, is about to be released.
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
		return nil // whatever Limit and Weight are
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

func errStuck(r *driver.Request) error {
	return fmt.Errorf("the owner %q would wait for a hold of its own: %w", r.Owner, driver.ErrDeadlock)
}

// admit lets r in or queues it. A request that is not a re-entry never overtakes one that waits.
func (s *state) admit(now time.Time, r demand) (*record, error) {
	l := s.locks[r.Key]
	if l == nil {
		l = &lock{key: r.Key, last: s.floor}
		s.locks[r.Key] = l
	}
	free := l.free(r)
	if !free {
		s.recall(l)
	}
	if !free && r.Try {
		return nil, l.heldBy(r) // the lock has a holder, or it would have had no queue and let r in
	}
	rec := &record{entry: entry{ref: ref{r.Key, r.ID}}, req: *r.Request, beside: r.beside, since: now}
	rec.req.Waiting = nil // the driver calls it, and a long hold must not keep alive what it refers to
	s.records[rec.ref] = rec
	l.size(r.Request)
	if free {
		s.grant(now, l, rec)
		return rec, nil
	}
	s.queued++
	l.enqueue(rec)
	return rec, nil
}

// grant makes rec a holder. The token is minted here, in the step that grants.
func (s *state) grant(now time.Time, l *lock, rec *record) {
	v, g := l.judge(rec.demand(), nil)
	if v == queues {
		g = &group{since: now}
		l.groups = append(l.groups, g)
	}
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

// change notes that who holds key has changed.
func (s *state) change(key driver.Key) {
	if s.watched[key] > 0 {
		s.changed[key] = struct{}{}
	}
}
