package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// LockOptions.Wait: a bound on the waiting that belongs to the lock and not to a context. So its end is no context's
// end, and errors must not match one: code that hands on a context's error would take its caller for gone.

// waitBound is the bound of one call. The zero value bounds nothing.
type waitBound struct {
	ctx   context.Context //nolint:containedctx // of the call
	stop  context.CancelFunc
	over  *waitOverError
	start time.Time
}

// waitOverError says that LockOptions.Wait ended a wait. Each call has one of its own, by which it knows its bound from
// that of a call around it.
type waitOverError struct{ wait time.Duration }

// Error names the option.
func (e *waitOverError) Error() string {
	return fmt.Sprintf("the wait of %v is over (LockOptions.Wait)", e.wait)
}

// boundWait returns the bound of a call, and the context that ends with it. wait is 0 if ctx alone bounds the waiting.
func BoundWait(ctx context.Context, wait time.Duration) (waitBound, context.Context) {
	if wait == 0 {
		return waitBound{}, ctx
	}
	b := waitBound{over: &waitOverError{wait}, start: time.Now()}
	b.ctx, b.stop = context.WithTimeoutCause(ctx, wait, b.over)
	return b, b.ctx
}

// end releases what the bound needed, and returns err as the caller sees it: if the bound has ended the call, a
// *HeldError that says how long it has waited, or an *UnavailableError if the engine has not said that another owner
// has the lock. What a context's error has no part in stays as it is.
func (b *waitBound) End(op string, key driver.Key, err error) error {
	if b.over == nil {
		return err
	}
	defer b.stop()
	over := errors.Is(context.Cause(b.ctx), b.over) // and not another bound, or ctx
	if err == nil || !over || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	switch own := err.(type) { //nolint:errorlint // only what this package makes of the end of a wait
	case *driver.HeldError:
		held := *own
		held.Cause, held.Waited = nil, time.Since(b.start)
		return &held
	case *driver.UnavailableError:
		unanswered := *own
		unanswered.Err = b.instead(own.Err)
		return &unanswered
	}
	// It was over before the engine was asked, or in the instant of the grant, which is given back.
	return &driver.UnavailableError{Op: op, Name: key.Name, Err: b.over}
}

// instead returns err with the end of the bound in place of the context's.
func (b *waitBound) instead(err error) error {
	if all, is := err.(several); is { //nolint:errorlint // as reasons makes it
		parts := make(several, len(all))
		for i, part := range all {
			parts[i] = b.instead(part)
		}
		return parts
	}
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	case err.Error() == context.DeadlineExceeded.Error(): // it says nothing else
		return b.over
	}
	return several{&boundedError{err}, b.over}
}

// boundedError is an error that says more than that a context has ended, such as what a server has answered last. It
// matches all that err does except for the errors of contexts.
type boundedError struct{ err error }

// Error gives what err does.
func (e *boundedError) Error() string { return e.err.Error() }

// Is matches what err matches, except for the errors of contexts.
func (e *boundedError) Is(t error) bool {
	return t != context.DeadlineExceeded && t != context.Canceled && errors.Is(e.err, t)
}

// As is the same for errors of types.
func (e *boundedError) As(t any) bool { return errors.As(e.err, t) }
