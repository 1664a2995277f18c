package broken

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Resizer = (*Driver)(nil)

// Resize changes the limit of a semaphore that is in use.
func (d *Driver) Resize(ctx context.Context, key driver.Key, limit int) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(key)
	s.evict(l)
	tooMany := func(w *entry) bool { return w.r.Weight > limit }
	switch {
	case len(l.holders)+len(l.waiters) == 0:
		return nil
	case slices.ContainsFunc(l.waiters, tooMany) && s.defect != ResizeLocksOut:
		return driver.ErrConflict
	}
	l.limit = limit
	for _, w := range l.waiters {
		w.r.Limit = limit
	}
	if s.defect != ResizeWakesNobody {
		s.serve(l)
	}
	return nil
}
