package memlock

import (
	"cmp"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What becomes of a hold: renewed, shortened, recalled, released, undone, expired, broken. Each change ends in drain
// (drain.go), which lets the next ones in.

// extend makes rec last until end at least; it never shortens.
func (s *state) extend(rec *record, end time.Time) {
	if end.After(rec.at) {
		s.leases.move(&rec.entry, end)
	}
}

// renew lengthens a hold and refreshes what operators see of it.
func (s *state) renew(now time.Time, r *driver.Renewal) error {
	s.advance(now)
	rec, err := s.live(ref{r.Key, r.ID})
	if err != nil {
		return err
	}
	rec.signalled = false // its client has heard of the grant
	// Not shortened by a retaining renewal: a late copy of the request can come as long as before.
	rec.req.Lease = max(r.Lease, rec.req.Lease)
	s.prolong(now, rec, r)
	if rec.retained || r.Pass < rec.pass { // operators see that nobody holds it, or the renewal is a late one
		s.recallIfQueued(rec)
		return nil
	}
	rec.pass = min(r.Pass, rec.block.n-1)
	rec.req.Label = r.Label
	if !rec.req.Named {
		rec.req.Owner = r.Owner // the name of a named owner is how others re-enter, so it cannot change
	}
	s.recallIfQueued(rec)
	return nil
}

// prolong makes rec last as r says. A retaining renewal is the only one that shortens, and only one of a pass that is
// not older than the latest. An older one is late: somebody holds the lock again. Until a later pass comes, nothing
// lengthens what is retained.
func (s *state) prolong(now time.Time, rec *record, r *driver.Renewal) {
	switch later := r.Pass > rec.pass; {
	case r.Retained && (later || r.Pass == rec.pass):
		rec.retained, rec.pass = true, min(r.Pass, rec.block.n-1)
		rec.req.Owner, rec.req.Label = "", ""
		s.leases.move(&rec.entry, now.Add(r.Lease))
	case later || !rec.retained:
		rec.retained = false
		s.extend(rec, now.Add(r.Lease))
	}
}

// recall tells the holders of l that may retain it that another client wants the lock. The calls are made when the
// mutex has been given up.
func (s *state) recall(l *lock) {
	for _, g := range l.groups {
		for _, h := range g.holds {
			if h.req.Wanted != nil && h.req.Retains && h.phase == held {
				s.recalled = append(s.recalled, h.req.Wanted)
			}
		}
	}
}

// recallIfQueued tells the holder rec if somebody waits: it repeats a recall that was lost.
func (s *state) recallIfQueued(rec *record) {
	if l := s.locks[rec.ref.key]; len(l.queue) > 0 && rec.req.Wanted != nil {
		s.recalled = append(s.recalled, rec.req.Wanted)
	}
}

// release ends a hold, shortens it (Keep), or undoes whatever its request has left.
func (s *state) release(now time.Time, r *driver.Release) error {
	s.advance(now)
	at := ref{r.Key, r.ID}
	if r.Undo {
		s.undo(now, at, r.Horizon)
		return nil
	}
	// From here on only a hold that still counts can be meant.
	rec, err := s.live(at)
	if err != nil {
		return err
	}
	if r.Keep > 0 {
		rec.phase = kept
		rec.req.Lease = max(rec.req.Lease, r.Horizon) // so long its tomb will stand
		s.leases.move(&rec.entry, now.Add(r.Keep))
		s.change(at.key)
		s.drain(now, s.locks[at.key]) // nobody gets in, but a waiting upgrade may have lost the read that it upgrades
		return nil
	}
	s.end(now, rec, "", r.Horizon)
	return nil
}

// undo takes away a request in any phase, and makes sure that a late copy takes nothing.
func (s *state) undo(now time.Time, at ref, horizon time.Duration) {
	rec := s.records[at]
	switch {
	// Nothing has arrived yet, or everything is forgotten. A tomb refuses the copy that may still come.
	case rec == nil:
		if horizon > 0 {
			s.graves.bury(tomb{entry: entry{ref: at}, undone: true}, now.Add(horizon))
		}
	case rec.phase == waiting, rec.phase == parked:
		s.settled = append(s.settled, settlement{ref: at, err: errGone})
		s.graves.bury(tomb{entry: entry{ref: at}, undone: true}, now.Add(max(rec.req.Lease, horizon)))
		s.withdraw(now, rec)
	// It holds the lock. If a signal brought the grant and its client never confirmed it, the signal goes on to the
	// next.
	default:
		rec.undone = true
		s.end(now, rec, "", horizon)
		s.passSignal(now, rec)
	}
}

// withdraw takes waiting requests out of their queues. Requests behind them may get in, but only when all of them are
// out. They leave together, so none of them may be granted because another has left.
func (s *state) withdraw(now time.Time, recs ...*record) {
	for _, rec := range recs {
		if rec.phase == parked {
			s.unpark(rec)
		} else {
			s.leave(s.locks[rec.ref.key], rec)
		}
		delete(s.records, rec.ref)
	}
	for _, rec := range recs {
		if l := s.locks[rec.ref.key]; l != nil {
			s.drain(now, l)
		}
	}
	for _, rec := range recs {
		s.passSignal(now, rec)
	}
}

// end ends a hold and lets the next waiters in. horizon is how long a late copy may come.
func (s *state) end(now time.Time, rec *record, reason driver.LostReason, horizon time.Duration) {
	s.fell(now, rec, reason, horizon)
	s.drain(now, s.locks[rec.ref.key])
}

// fell ends a hold and does not grant the queue, for steps that end several.
func (s *state) fell(now time.Time, rec *record, reason driver.LostReason, horizon time.Duration) {
	group := rec.group
	s.locks[rec.ref.key].drop(rec)
	s.leases.remove(&rec.entry)
	delete(s.records, rec.ref)
	s.change(rec.ref.key)
	t := tomb{
		entry: entry{ref: rec.ref}, reason: reason, token: rec.block.first, shared: rec.req.Mode != driver.Exclusive,
		undone: rec.undone,
	}
	if reason == driver.LostExpired { // only then is the group asked for
		t.group = group
	}
	if rec.req.Named {
		t.owner = rec.req.Owner
	}
	s.graves.bury(t, now.Add(max(rec.req.Lease, horizon)))
}

// advance ends the leases that are over by now and forgets the requests that can no longer come. Every step begins with
// it, so the state never acts on a lease that is over, although no timer has fired.
func (s *state) advance(now time.Time) {
	s.graves.forget(now)
	for e, ok := s.leases.due(now); ok; e, ok = s.leases.due(now) {
		rec := s.records[e.ref]
		switch {
		case rec.phase == kept:
			s.end(now, rec, rec.lost, 0)
		case rec.req.LockDelay > 0:
			s.delay(now, rec, driver.LostExpired, rec.at)
		default:
			s.end(now, rec, driver.LostExpired, 0)
		}
	}
}

// delay keeps rec, which was lost at the instant at, from everybody for its LockDelay.
func (s *state) delay(now time.Time, rec *record, reason driver.LostReason, at time.Time) {
	rec.phase, rec.lost = kept, reason
	s.change(rec.ref.key)
	s.leases.move(&rec.entry, at.Add(rec.req.LockDelay))
	s.drain(now, s.locks[rec.ref.key]) // as after a release with Keep
}

// breakHolds ends all holds of the owner whose tokens contain token, and returns the functions that tell their holders.
// The caller calls them without the mutex.
func (s *state) breakHolds(now time.Time, key driver.Key, token uint64) ([]func(driver.LostReason, error), error) {
	s.advance(now)
	l := s.locks[key]
	if l == nil {
		return nil, driver.ErrNotHeld
	}
	// Any token of the block will do: after local passes the operator may see another than the first.
	at := slices.IndexFunc(l.groups, func(g *group) bool { return g.contains(token) })
	if at < 0 {
		return nil, l.heldBy(demand{})
	}
	var lost []func(driver.LostReason, error)
	for _, rec := range slices.Clone(l.groups[at].holds) {
		if rec.phase == held && rec.req.Lost != nil { // a hold released with Keep has lost nothing
			lost = append(lost, rec.req.Lost)
		}
		// The break begins the delay. A second break finds the hold kept, and ends it.
		if rec.phase == held && rec.req.LockDelay > 0 {
			rec.phase, rec.lost = kept, driver.LostBroken
			s.leases.move(&rec.entry, now.Add(rec.req.LockDelay))
			s.change(key)
			continue
		}
		s.fell(now, rec, cmp.Or(rec.lost, driver.LostBroken), 0)
	}
	// Only now: what was left of the owner in between would have let its waiting requests in.
	s.drain(now, l)
	return lost, nil
}

// live returns the hold with this identity if it can still be renewed and released, or says how it ended.
func (s *state) live(at ref) (*record, error) {
	if rec := s.records[at]; rec != nil && rec.phase == held {
		return rec, nil
	}
	if t := s.graves.tombs[at]; t != nil {
		return nil, s.lost(t)
	}
	if rec := s.records[at]; rec != nil {
		return nil, rec.over()
	}
	return nil, s.lost(&tomb{entry: entry{ref: at}, reason: driver.LostExpired})
}

// over says why rec, which is kept or not granted yet, is not to be had.
func (rec *record) over() error {
	if rec.lost == "" {
		return errGone
	}
	return &driver.LostError{Kind: rec.ref.key.Kind, Name: rec.ref.key.Name, Token: rec.block.first, Reason: rec.lost}
}

// lost says how the hold under t ended. A hold that expired while another owner is inside now was taken.
func (s *state) lost(t *tomb) error {
	if t.reason == "" {
		return errGone
	}
	reason := t.reason
	if l := s.locks[t.ref.key]; reason == driver.LostExpired && l != nil && l.takenFrom(t) {
		reason = driver.LostTaken
	}
	return &driver.LostError{Kind: t.ref.key.Kind, Name: t.ref.key.Name, Token: t.token, Reason: reason}
}

// next returns when the state will change by itself to somebody's benefit: the earliest end of a lease, if anybody
// waits. Without a waiter nothing needs a timer, because advance comes first in every step.
func (s *state) next() (time.Time, bool) {
	if s.queued == 0 || len(s.leases) == 0 {
		return time.Time{}, false
	}
	return s.leases[0].at, true
}

// settle returns the answers to waiting requests since it was last called.
func (s *state) settle() []settlement {
	settled := s.settled
	s.settled = nil
	return settled
}

// highest returns a number that is at least the largest token ever granted.
func (s *state) highest() uint64 {
	highest := s.floor
	for _, l := range s.locks {
		highest = max(highest, l.last)
	}
	return highest
}
