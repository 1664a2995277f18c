package broken

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
)

// The engine: locks, their queues, and the step that grants. The methods of this file are called with Store.mu held.

// Store is an engine: a set of locks that several drivers share.
type Store struct {
	defect  Defect
	mu      sync.Mutex // guards everything below, the locks and their entries; Waiting and Lost are not called under it
	locks   map[driver.Key]*lock
	gone    map[string]bool // IDs that were released, undone or broken; a small store need not forget them
	grants  int             // how many grants were made; nonces count them
	latches map[driver.Key]*latch
	parked  map[driver.Key][]*entry // the waits for a signal
	sent    map[string]bool         // the IDs of the signals that have come
	undone  map[string]bool         // the IDs of the requests that were undone
	watches map[*watch]struct{}
	hung    chan struct{} // closed when the store answers again; nil while it does
}

// NewStore returns an empty engine with a defect, or None.
func NewStore(d Defect) *Store {
	return &Store{
		defect: d, locks: make(map[driver.Key]*lock), gone: make(map[string]bool),
		watches: make(map[*watch]struct{}), latches: make(map[driver.Key]*latch),
		parked: make(map[driver.Key][]*entry), sent: make(map[string]bool), undone: make(map[string]bool),
	}
}

// lock is one named lock. It stays in the store when it is free, which keeps its token.
type lock struct {
	key     driver.Key
	limit   int
	value   string // the label of its former holder
	token   uint64 // the last token that was handed out
	waited  bool   // there has been a wait for a signal, which has defects of its own
	former  *entry // its former holder
	holders []*entry
	waiters []*entry // the first to come first
	expired []*entry // holds whose lease is over
	timer   *time.Timer

	converted bool // there has been a Convert, which has defects of its own
}

// entry is a request on its way from the queue to its end.
type entry struct {
	r        driver.Request // with what is shown to operators as it is now
	client   *Driver
	grant    driver.Grant
	since    time.Time
	until    time.Time // of a holder
	kept     bool      // released, but in the way until the instant until
	by       call
	left     bool          // its context ended while it waited
	resumed  bool          // it was asked for again after that
	woken    bool          // it was signalled, and its client has not confirmed that it has the lock
	hung     bool          // its wait was given up while the store hung
	beside   string        // the ID of the hold beside which it was asked for; empty if it stands on its own
	family   string        // the ID of its owner's first hold; empty if it is that one
	upgrade  bool          // of a read to a write
	waited   bool          // it was queued
	pass     int           // how often it has passed on, by its latest renewal
	retained bool          // nobody holds it, and its client keeps it
	refused  error         // why it was not granted in the end
	granted  chan struct{} // closed when it becomes a holder, or is refused
}

// call is how a request came. Each way has defects of its own, so that those of one leave the requests of others alone.
type call uint8

const (
	acquire call = iota
	requeue
	condWait
	bundle
)

// reenters reports whether two entries are one owner's who may re-enter. Permits are never re-entered.
func (e *entry) reenters(h *entry) bool {
	if e.beside != "" {
		return !e.upgrade && e.related(h)
	}
	return e.r.Named && h.r.Named && !h.kept && e.r.Owner == h.r.Owner && e.r.Kind != driver.KindSemaphore
}

// lock returns the lock that key means, and makes it if there is none.
func (s *Store) lock(key driver.Key) *lock {
	asked := key
	if s.defect == CaseIsFolded {
		key.Name = strings.ToLower(key.Name)
	}
	if s.defect == KindsShareNames && key.Kind == driver.KindRWMutex {
		key.Kind = driver.KindMutex
	}
	l := s.locks[key]
	if l == nil {
		l = &lock{key: asked}
		s.locks[key] = l
	}
	return l
}

// fits reports whether e can be inside together with the holders.
func (s *Store) fits(l *lock, e *entry) bool {
	if s.defect == CrowdGetsIn && len(l.waiters) > 5 {
		return true
	}
	used := 0
	for _, h := range l.holders {
		if e.beside != "" && (e.related(h) || e.upgrade && s.defect == UpgradeIgnoresReaders) {
			continue
		}
		used += h.r.Weight
		switch {
		case e.r.Mode == driver.Exclusive,
			h.r.Mode == driver.Exclusive &&
				(s.defect != ReadersGetInBeside || e.r.Mode != driver.Shared || l.converted || h.r.Retains),
			e.r.Mode == driver.Upgradeable && h.r.Mode == driver.Upgradeable:
			return false
		}
	}
	return e.r.Limit == 0 || e.r.Mode == driver.Exclusive || used+e.r.Weight <= e.r.Limit
}

// admit makes e a holder.
func (s *Store) admit(l *lock, e *entry) {
	e.grant = s.mint(l, e)
	e.since = time.Now()
	e.until = e.since.Add(e.r.Lease)
	if s.defect == EndsEarly && e.r.Lease < time.Minute && e.r.LockDelay == 0 {
		e.grant.Lease *= 2
	}
	l.holders = append(l.holders, e)
	s.tell(l)
	s.arm(l)
	close(e.granted)
}

// mint makes the token and the nonce, in the step that grants.
func (s *Store) mint(l *lock, e *entry) driver.Grant {
	defect := s.defect
	// A lock that has been converted, or waited for by a signal, has defects of its own.
	if l.converted && defect.Promise != drivertest.Conversion || l.waited && defect.Promise != drivertest.Conditions {
		defect = None
	}
	g := driver.Grant{Tokens: max(e.r.Tokens, 1), Sent: time.Now(), Lease: e.r.Lease}
	for _, h := range slices.Backward(l.holders) { // the newest first: an upgrade has a token of its own
		if (e.reenters(h) || defect == UpgradeKeepsToken && e.beside != "" && e.related(h)) &&
			defect != ReentryIsNewGrant {
			g.Token, g.Tokens, g.Nonce = h.grant.Token, h.grant.Tokens, h.grant.Nonce
			return g
		}
	}
	if defect == TokensAreRandom {
		l.token = rand.Uint64() >> 2
	}
	g.Token = l.token + 1
	l.token += uint64(g.Tokens)
	if defect == BlocksOverlap {
		l.token = g.Token
	}
	s.grants++
	g.Nonce = fmt.Sprintf("nonce-%d", s.grants)
	if defect == NonceRepeats {
		g.Nonce = fmt.Sprintf("nonce of %p", l)
	}
	return g
}

// serve lets in the next waiter, and after a named owner its other waiters, wherever they stand. It begins again after
// each, because a grant may let in another.
func (s *Store) serve(l *lock) {
	for i := 0; i < len(l.waiters); {
		e := l.waiters[i]
		if !s.reentersAny(l, e) && (!s.isNext(l, i) || !s.fits(l, e)) {
			i++
			continue
		}
		l.waiters = slices.Delete(l.waiters, i, i+1)
		s.admit(l, e)
		i = 0
	}
}

// isNext reports whether the waiter at i may be let in if it fits. Only the first may: one that does not fit must not
// be overtaken by one that does.
func (s *Store) isNext(l *lock, i int) bool {
	kind := l.waiters[i].r.Kind
	switch {
	case s.defect == LastComeFirstServed && kind == driver.KindMutex:
		return i == l.lastCome()
	case s.defect == SmallOvertakesBig && kind == driver.KindSemaphore:
		return true
	}
	return i == 0
}

// lastCome returns the waiter that came last. It returns the first one if not all of them came by one Acquire without
// retention.
func (l *lock) lastCome() int {
	if slices.ContainsFunc(l.waiters, func(e *entry) bool { return e.by != acquire || e.left || e.r.Retains }) {
		return 0
	}
	return len(l.waiters) - 1
}

// reentersAny reports whether e re-enters beside one of the holders.
func (s *Store) reentersAny(l *lock, e *entry) bool {
	return slices.ContainsFunc(l.holders, e.reenters) || s.defect == SessionLetsInAgain && l.isReadBy(e)
}

// isReadBy reports whether e is to write and all readers are of its own client: the defect of an engine that knows
// sessions only.
func (l *lock) isReadBy(e *entry) bool {
	other := func(h *entry) bool { return h.client != e.client || h.r.Mode != driver.Shared }
	return e.r.Kind == driver.KindRWMutex && e.r.Mode == driver.Exclusive && e.beside == "" &&
		len(l.holders) > 0 && !slices.ContainsFunc(l.holders, other)
}

// held is the refusal by a lock: it describes one of the holders.
func (s *Store) held(l *lock, key driver.Key) *driver.HeldError {
	e := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if len(l.holders) > 0 {
		h := l.holders[0]
		e.Owner, e.Client, e.Token, e.Since, e.Until = h.r.Owner, h.r.Client, h.grant.Token, h.since, h.until
		e.Retains = s.saysRetains(h)
	}
	return e
}

func find(entries []*entry, id string) *entry {
	for _, e := range entries {
		if e.r.ID == id {
			return e
		}
	}
	return nil
}

func remove(entries []*entry, e *entry) []*entry {
	return slices.DeleteFunc(entries, func(other *entry) bool { return other == e })
}

// How holds end: by release, by their lease, by a break or with a delay, and the alarm for the next lease.

// end takes a holder away and lets in the next one.
func (s *Store) end(l *lock, h *entry) {
	l.holders = remove(l.holders, h)
	s.gone[h.r.ID] = true
	l.former, l.value = h, h.r.Label
	s.tell(l)
	if s.defect == FirstReleaseFrees {
		l.holders = slices.DeleteFunc(l.holders, h.reenters)
	}
	s.arm(l)
	s.refuseOrphans(l)
	if s.defect != TryOvertakes {
		s.serve(l)
		return
	}
	// TryOvertakes: for a moment the lock looks free although somebody waits.
	time.AfterFunc(3*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serve(l)
	})
}

// endAllOf takes away whatever d holds. It takes Store.mu itself.
func (s *Store) endAllOf(d *Driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		for _, h := range slices.Clone(l.holders) {
			if h.client == d {
				s.end(l, h)
			}
		}
	}
}

// evict ends the holds whose lease is over. Every step begins with it.
func (s *Store) evict(l *lock) {
	now := time.Now()
	for _, h := range slices.Clone(l.holders) {
		if !now.Before(h.until) && s.delays(l, h, h.until) {
			continue
		}
		if !now.Before(h.until) {
			l.expired = append(l.expired, h)
			if h.woken && s.defect != DeadTakeSignals {
				s.wake(l)
			}
			s.end(l, h)
		}
	}
}

// delays keeps l closed after h was lost at the instant lost. It reports false if h has no delay, or if that is over.
func (s *Store) delays(l *lock, h *entry, lost time.Time) bool {
	if h.kept || h.r.LockDelay <= 0 || s.defect == LossIsForgotten {
		return false
	}
	h.kept, h.until = true, lost.Add(h.r.LockDelay)
	s.arm(l)
	s.tell(l)
	return time.Now().Before(h.until)
}

// endsPlainly reports whether the end of e means nothing but that it ends. Other ends have defects of their own.
func (e *entry) endsPlainly() bool { return e.r.LockDelay == 0 && !e.r.Retains }

// arm sets the alarm for the next lease that runs out, so that waiters are let in although nobody calls.
func (s *Store) arm(l *lock) {
	if l.timer != nil {
		l.timer.Stop()
	}
	if len(l.holders) == 0 || s.defect == DeadWakeNobody && l.holders[0].endsPlainly() && !l.waited {
		return
	}
	next := slices.MinFunc(l.holders, func(a, b *entry) int {
		return cmp.Compare(a.until.UnixNano(), b.until.UnixNano())
	})
	l.timer = time.AfterFunc(time.Until(next.until), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.evict(l)
	})
}

// Waits that are left and taken up again.

// isLeft is called when the context of a wait has ended.
func (s *Store) isLeft(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.left = true
	if s.defect == LeftLosesPlace && e.beside == "" && e.by != condWait {
		l := s.lock(e.r.Key)
		l.waiters = remove(l.waiters, e)
	}
}

// resumes is called when e, who waits, is asked for again.
func (s *Store) resumes(l *lock, e *entry) {
	e.resumed = e.left
	if e.resumed && s.defect == ResumedGoesToTheEnd {
		l.waiters = append(remove(l.waiters, e), e)
	}
}
