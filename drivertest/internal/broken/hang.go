package broken

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// A store that answers nobody, and the defects of drivers that cannot bear it.

// Hang makes the store answer nobody until resume is called. Waits in its queues go on.
func (s *Store) Hang() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hung := make(chan struct{})
	s.hung = hung
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hung = nil
		close(hung)
	}
}

// answers returns a channel that is closed when the store answers again, or nil if it does now.
func (s *Store) answers() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hung
}

// reach waits until the store answers, and every call begins with it. An error says that the store did not answer
// before the end of ctx.
func (d *Driver) reach(ctx context.Context) error {
	answers := d.s.answers()
	if answers == nil {
		return d.sound(ctx)
	}
	if d.s.defect == IgnoresContexts {
		<-answers
		return nil
	}
	select {
	case <-answers:
		return d.sound(ctx)
	case <-ctx.Done():
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	d.deaf = d.s.defect == SilenceIsForGood
	return &driver.UnavailableError{Err: ctx.Err()}
}

// sound refuses a call that cannot be made: the connection is used up, or ctx has ended.
func (d *Driver) sound(ctx context.Context) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.deaf {
		return &driver.UnavailableError{}
	}
	return ctx.Err()
}

// heed notes that the context of a wait has ended. If the store hangs then, the wait cannot be taken back.
func (d *Driver) heed(e *entry) {
	answers := d.s.answers()
	if answers == nil {
		return
	}
	if d.s.defect == IgnoresContexts {
		<-answers
	}
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	e.hung = true
}
