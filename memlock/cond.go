package memlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Conditions: a second queue for each mutex, whose first waiter a signal moves to the end of the lock's queue
// (queue.go). The signal stays with the request until its client is known to have the lock (record.signalled).

var _ driver.Conder = (*Driver)(nil)

// CondWait gives a hold up and waits for a signal, and then for the lock. If ctx ends the wait, nothing of it is left
// when CondWait returns, and a signal that had come goes on to the next.
func (d *Driver) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	own, told := d.own(r), false
	tell := func() {
		if !told {
			told = true
			parked()
		}
	}
	// Waiting is called in this goroutine, first of all before the wait begins: that is when the hold has been given
	// up.
	own.Waiting = func(*driver.HeldError) { tell() }
	g, err := d.enter(ctx, own, func(now time.Time, q *state) (*record, error) { return q.condWait(now, give, own) })
	if err == nil {
		tell()
	}
	return g, err
}

// CondSignal wakes the wait that has lasted longest, or all. It does not wait, and needs no hold.
func (d *Driver) CondSignal(ctx context.Context, c *driver.Signal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.Kind != driver.KindMutex {
		return fmt.Errorf("a condition of a lock of kind %q: %w", c.Kind, driver.ErrUnsupported)
	}
	return d.do(func(now time.Time, q *state) error {
		q.signal(now, c)
		return nil
	})
}

// condWait parks r and ends the hold give, in one step: no signal can fall in between. Nothing happens if either is
// refused.
func (s *state) condWait(now time.Time, give *driver.Release, r *driver.Request) (*record, error) {
	s.advance(now)
	if rec := s.records[ref{r.Key, r.ID}]; rec != nil {
		return s.again(now, rec, demand{Request: r})
	}
	if r.Kind != driver.KindMutex || r.Mode != driver.Exclusive || r.Try || give.Key != r.Key || give.Undo ||
		give.Keep > 0 {
		return nil, fmt.Errorf("a wait for a condition is for exclusive holds of a mutex: %w", driver.ErrUnsupported)
	}
	holding, err := s.live(ref{give.Key, give.ID})
	if err != nil {
		return nil, err
	}
	if err := s.refuse(demand{Request: r}, holding); err != nil {
		return nil, err
	}
	// With another hold of the owner the lock would not be given up by this step.
	if slices.ContainsFunc(holding.group.holds, func(h *record) bool { return h != holding && h.phase == held }) {
		return nil, fmt.Errorf("the owner %q has further holds: %w", r.Owner, driver.ErrNested)
	}
	rec := &record{entry: entry{ref: ref{r.Key, r.ID}}, req: *r, phase: parked, since: now}
	rec.req.Waiting = nil // see admit
	s.records[rec.ref] = rec
	s.conds[r.Key] = append(s.conds[r.Key], rec)
	// After r is parked: the holder that gets in now may signal at once.
	s.end(now, holding, "", give.Horizon)
	return rec, nil
}

// signal wakes waiters, once for each ID: a repetition wakes nobody.
func (s *state) signal(now time.Time, c *driver.Signal) {
	s.advance(now)
	// The answers of latches are kept for a horizon, and that is all that a signal needs.
	call := &driver.LatchCall{Key: c.Key, ID: c.ID, Horizon: c.Horizon}
	if s.latches.told(now, call) != nil {
		return
	}
	s.latches.remember(now, call, answer{})
	for s.wakeNext(now, c.Key) && c.All {
	}
}

// wakeNext moves the oldest waiter for the condition to the end of the lock's queue. It does not overtake those who
// wait for the lock. It reports whether anybody waited.
func (s *state) wakeNext(now time.Time, key driver.Key) bool {
	waits := s.conds[key]
	if len(waits) == 0 {
		return false
	}
	rec := waits[0]
	s.unpark(rec)
	rec.phase, rec.since, rec.signalled = waiting, now, true
	l := s.locks[key]
	if l == nil {
		l = &lock{key: key, last: s.floor}
		s.locks[key] = l
	}
	s.queued++
	// At the end of the queue: the waiter gave the lock up, so it comes behind everybody who asked before the signal.
	l.enqueue(rec)
	s.drain(now, l)
	return true
}

// unpark takes rec out of the waiters for a signal.
func (s *state) unpark(rec *record) {
	key := rec.ref.key
	at := slices.Index(s.conds[key], rec)
	if s.conds[key] = slices.Delete(s.conds[key], at, at+1); len(s.conds[key]) == 0 {
		delete(s.conds, key)
	}
}

// passSignal gives the signal that rec had and has not used to the next waiter. Otherwise that one would sleep although
// somebody signalled.
func (s *state) passSignal(now time.Time, rec *record) {
	if rec.signalled {
		rec.signalled = false
		s.wakeNext(now, rec.ref.key)
	}
}
