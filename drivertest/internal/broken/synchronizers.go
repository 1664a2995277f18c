package broken

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Conditions: a second queue, and the signals that move its waiters into the lock's.

var _ driver.Conder = (*Driver)(nil)

// CondWait gives a hold up and waits for a signal, and then for the lock.
func (d *Driver) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	if err := d.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.park(give, r)
	if err != nil {
		return driver.Grant{}, err
	}
	parked()
	return d.await(ctx, e, nil, r)
}

// park returns the entry that waits; a copy gets that of the request before it.
func (d *Driver) park(give *driver.Release, r *driver.Request) (*entry, error) {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(r.Key)
	s.evict(l)
	if s.undone[r.ID] {
		return nil, &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	}
	if e := find(s.parked[r.Key], r.ID); e != nil {
		return e, nil
	}
	if e, _, err := s.known(l, r); e != nil || err != nil {
		return e, err
	}
	h := find(l.holders, give.ID)
	switch {
	case h == nil:
		return nil, &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	case s.defect != CondIgnoresNesting &&
		slices.ContainsFunc(l.holders, func(o *entry) bool { return o != h && o.reenters(h) }):
		return nil, driver.ErrNested
	}
	e := &entry{r: *r, client: d, by: condWait, since: time.Now(), granted: make(chan struct{})}
	s.parked[r.Key] = append(s.parked[r.Key], e)
	l.waited = true
	if s.defect != CondKeepsLock {
		s.end(l, h)
	}
	if s.defect == SignalIsKept && s.sent["kept"] {
		delete(s.sent, "kept")
		s.wake(l)
	}
	return e, nil
}

// CondSignal wakes one or all.
func (d *Driver) CondSignal(ctx context.Context, c *driver.Signal) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[c.ID] && s.defect != SignalCountsTwice {
		return nil
	}
	s.sent[c.ID] = true
	l := s.lock(c.Key)
	s.sent["kept"] = len(s.parked[c.Key]) == 0
	for s.wake(l) && (c.All || s.defect == SignalWakesAll) {
	}
	return nil
}

// wake moves the oldest wait for a signal to the lock's queue. It reports whether there was one.
func (s *Store) wake(l *lock) bool {
	waits := s.parked[l.key]
	if len(waits) == 0 {
		return false
	}
	e := waits[0]
	s.parked[l.key] = waits[1:]
	e.woken = true
	if s.defect == WokenOvertake {
		l.waiters = slices.Insert(l.waiters, 0, e)
	} else {
		l.waiters = append(l.waiters, e)
	}
	s.serve(l)
	return true
}

// undoCond takes a wait for a signal away, and passes its signal on.
func (s *Store) undoCond(l *lock, id string) {
	s.undone[id] = true
	s.parked[l.key] = slices.DeleteFunc(s.parked[l.key], func(e *entry) bool { return e.r.ID == id })
	for _, e := range slices.Concat(l.waiters, l.holders) {
		if e.r.ID == id && e.woken && s.defect != SignalIsLost {
			e.woken = false
			s.wake(l)
		}
	}
}

// Latches: a count, and the answers to the IDs that came before.

var _ driver.Latcher = (*Driver)(nil)

// latch is a count, and the answers that were given.
type latch struct {
	left int64
	told map[string]int64 // what was left, by the ID of the count-down
	set  map[string]bool  // what each set was answered, by its ID
}

func (s *Store) latch(key driver.Key) *latch {
	l := s.latches[key]
	if l == nil {
		l = &latch{told: make(map[string]int64), set: make(map[string]bool)}
		s.latches[key] = l
	}
	return l
}

// SetLatch sets the count of a latch that is at zero.
func (d *Driver) SetLatch(ctx context.Context, c *driver.LatchCall) (bool, error) {
	if err := d.reach(ctx); err != nil {
		return false, err
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.latch(c.Key)
	if set, before := l.set[c.ID]; before && s.defect != LatchSetTwice {
		return set, nil
	}
	l.set[c.ID] = l.left == 0 || s.defect == LatchSetAnew
	if l.set[c.ID] {
		l.left = c.Count
		if s.defect == LatchForgetsRounds {
			clear(l.told)
		}
	}
	return l.set[c.ID], nil
}

// CountDown takes one from the count.
func (d *Driver) CountDown(ctx context.Context, c *driver.LatchCall) (int64, error) {
	if err := d.reach(ctx); err != nil {
		return 0, err
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.latch(c.Key)
	if left, before := l.told[c.ID]; before && s.defect != LatchCountsTwice {
		return left, nil
	}
	if l.left > 0 || s.defect == LatchGoesBelowZero {
		l.left--
	}
	l.told[c.ID] = l.left
	if l.left == 0 && s.defect != LatchIsSilent {
		s.tell(&lock{key: c.Key})
	}
	return l.left, nil
}

// LatchCount tells the count.
func (d *Driver) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	if err := d.reach(ctx); err != nil {
		return 0, err
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	return d.s.latch(key).left, nil
}
