package interlock

import (
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// What a loss says of its cause: the last renewal that failed. renew.go notes it; hold_expire.go puts it into the
// *LostError.

// renewalError is the Cause of a loss for want of a confirmed renewal: how the last one failed. It matches what went
// wrong (such as ECONNREFUSED) but none of the errors by which callers tell classes apart. Otherwise a loss would match
// ErrUnavailable or a context's error as well, and code that retries those would retry after a loss.
type renewalError struct{ err error }

// Error gives what went wrong.
func (e *renewalError) Error() string { return "the last renewal: " + e.err.Error() }

// Is matches everything that the renewal's error matches, except for classes.
func (e *renewalError) Is(t error) bool { return !slices.Contains(classes, t) && errors.Is(e.err, t) }

// As is the same for errors of types.
func (e *renewalError) As(t any) bool {
	switch t.(type) {
	case **UnavailableError, **RefusedError, **HeldError, **LostError:
		return false
	}
	return errors.As(e.err, t)
}

// classes are the errors by which callers tell failures apart.
var classes = []error{
	ErrHeld, ErrLost, ErrReleased, ErrUnavailable, ErrRefused, ErrUnsupported, ErrClosed, ErrDeadlock, ErrNested,
	ErrConflict, ErrNotHeld,
	context.Canceled, context.DeadlineExceeded,
}

// hasFailed notes how a renewal of g failed. Few renewals fail, so the errors stand in a map beside the grants. The
// caller holds Client.mu.
func (g *grant) hasFailed(err error) {
	g.Failed = true
	if own, is := err.(*UnavailableError); is && own.Err != nil { //nolint:errorlint // only this says that nobody knows
		err = own.Err
	}
	c := g.m.c
	if c.failures == nil {
		c.failures = make(map[*grant]error)
	}
	c.failures[g] = err
}

// hasSucceeded forgets that a renewal has failed. The caller holds Client.mu.
func (g *grant) hasSucceeded() {
	g.Failed = false
	delete(g.m.c.failures, g)
}

// cause returns what led to the loss of g for that reason, as far as this process knows, or nil. The caller holds
// Client.mu.
func (g *grant) cause(reason LostReason) error {
	if err := g.m.c.failures[g]; err != nil && reason == driver.LostUnconfirmed {
		return &renewalError{err}
	}
	return nil
}

// goneError says how g has ended, to a caller that was about to use it. The caller holds Client.mu.
func (g *grant) goneError() error {
	if l := g.last; l != nil && l.loss != nil {
		return l.ended()
	}
	return ErrReleased
}
