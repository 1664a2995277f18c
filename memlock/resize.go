package memlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The limit of a semaphore that is in use.

var _ driver.Resizer = (*Driver)(nil)

// Resize changes the limit of a semaphore that is in use; see [driver.Resizer]. It does not wait.
func (d *Driver) Resize(_ context.Context, key driver.Key, limit int) error {
	if key.Kind != driver.KindSemaphore || limit < 1 {
		return fmt.Errorf("the limit %d of a lock of kind %q: %w", limit, key.Kind, driver.ErrUnsupported)
	}
	return d.do(func(now time.Time, q *state) error { return q.resize(now, key, limit) })
}

// resize changes the limit and lets in whoever fits now. A lock that is not in use has no limit to change. Requests
// that wait for more than the new limit could never be granted, so it is refused.
func (s *state) resize(now time.Time, key driver.Key, limit int) error {
	s.advance(now)
	l := s.locks[key]
	if l == nil || !l.sized {
		return nil
	}
	for _, w := range l.queue {
		if w.req.Mode == driver.Shared && w.req.Weight > limit {
			return fmt.Errorf("a request for %d permits waits, so the limit cannot be %d: %w", w.req.Weight, limit,
				driver.ErrConflict)
		}
	}
	l.limit = limit
	// Waiting requests are judged by the limit that they carry.
	for _, w := range l.queue {
		w.req.Limit = limit
	}
	s.drain(now, l)
	return nil
}
