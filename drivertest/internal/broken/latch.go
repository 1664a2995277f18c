package broken

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

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
