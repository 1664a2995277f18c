package broken

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Begin asks, and leaves the waiting to Acquire.
func (d *Driver) Begin(ctx context.Context, r *driver.Request) (g driver.Grant, waits bool, err error) {
	if d.s.defect == BeginWaits {
		g, err = d.Acquire(ctx, r)
		return g, false, err
	}
	if err := d.reach(ctx); err != nil {
		return driver.Grant{}, false, err
	}
	e, held, err := d.ask(r)
	if err != nil {
		return driver.Grant{}, false, err
	}
	d.s.mark(e)
	if held == nil {
		return e.grant, false, nil
	}
	if r.Waiting != nil && d.s.defect != BeginIsSilent {
		r.Waiting(held)
	}
	if d.s.defect == BeginsContextCounts {
		context.AfterFunc(ctx, func() { d.s.dequeue(e) })
	}
	return driver.Grant{}, true, nil
}

// mark notes that e has come by Begin.
func (s *Store) mark(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.by = begin
}

// goesOn is called when e, who waits, is asked for again.
func (s *Store) goesOn(l *lock, e *entry) {
	if e.by == begin && s.defect == BeginLosesPlace {
		l.waiters = append(remove(l.waiters, e), e)
	}
}

// dequeue takes e out of its queue, if it still waits.
func (s *Store) dequeue(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(e.r.Key)
	l.waiters = remove(l.waiters, e)
}
