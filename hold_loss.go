package interlock

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// renewalError is how the last renewal failed of a hold that was lost because none was confirmed. A loss is neither an
// engine that does not answer or refuses nor a context that has ended, so it matches nothing of that sort; what else
// went wrong is found as ever.
type renewalError struct{ err error }

// Error gives what went wrong.
func (e *renewalError) Error() string { return "the last renewal: " + e.err.Error() }

// Is finds what went wrong, see above.
func (e *renewalError) Is(t error) bool { return !slices.Contains(classes, t) && errors.Is(e.err, t) }

// As finds what went wrong, see above.
func (e *renewalError) As(t any) bool {
	switch t.(type) {
	case **UnavailableError, **RefusedError, **HeldError, **LostError:
		return false
	}
	return errors.As(e.err, t)
}

// classes are what callers tell errors apart by.
var classes = []error{
	ErrHeld, ErrLost, ErrReleased, ErrUnavailable, ErrRefused, ErrUnsupported, ErrClosed, ErrDeadlock, ErrNested,
	ErrConflict, ErrNotHeld,
	context.Canceled, context.DeadlineExceeded,
}

// hasFailed notes how a renewal of g failed. Few fail, so that is kept beside the grants. The caller holds Client.mu.
func (g *grant) hasFailed(err error) {
	g.failed = true
	if own, is := err.(*UnavailableError); is && own.Err != nil { //nolint:errorlint // only this says that nobody knows
		err = own.Err
	}
	c := g.m.c
	if c.failures == nil {
		c.failures = make(map[*grant]error)
	}
	c.failures[g] = err
}

// hasSucceeded takes that back. The caller holds Client.mu.
func (g *grant) hasSucceeded() {
	g.failed = false
	delete(g.m.c.failures, g)
}

// cause is what made g be lost for that reason, as far as this process knows, or nil. The caller holds Client.mu.
func (g *grant) cause(reason LostReason) error {
	if err := g.m.c.failures[g]; err != nil && reason == driver.LostUnconfirmed {
		return &renewalError{err}
	}
	return nil
}

// goneError says how g ended, to who was about to use it. The caller holds Client.mu.
func (g *grant) goneError() error {
	if l := g.last; l != nil && l.loss != nil {
		return l.ended()
	}
	return ErrReleased
}
