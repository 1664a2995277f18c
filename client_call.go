package interlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The contexts of questions to the engine, and calls that are repeated until they are answered (latches, conditions,
// Resize, Adopt). Acquisitions have their own way to repeat: acquire_retry.go.

// callContext is the context of a question that the engine is asked in the goroutine of a user's call. It ends with the
// user's context, with the client's, when it is told to, and after its time.
//
// Most questions are answered before anybody has to wait in a select for that end. So it costs no allocation until a
// driver asks for more than Err: then it becomes a context of package context.
type callContext struct {
	user  context.Context //nolint:containedctx // it is a context; nil if there is no user's
	base  context.Context //nolint:containedctx // the client's
	until time.Time       // its own end, if it has one

	mu         sync.Mutex      // guards what follows
	underlying context.Context //nolint:containedctx // what it has become
	stop       func()          // of underlying
	ended      bool            // told to end
}

var _ context.Context = (*callContext)(nil)

// Err says whether it has ended, and why.
func (x *callContext) Err() error {
	x.mu.Lock()
	underlying, ended := x.underlying, x.ended
	x.mu.Unlock()
	switch {
	case underlying != nil:
		return underlying.Err()
	case ended:
		return context.Canceled
	case x.user != nil && x.user.Err() != nil:
		return x.user.Err()
	case !x.until.IsZero() && !time.Now().Before(x.until):
		return context.DeadlineExceeded
	}
	return x.base.Err()
}

// Done returns a channel that is closed when it has ended. The first call makes a context of package context.
func (x *callContext) Done() <-chan struct{} { return x.become().Done() }

// Deadline returns none, although there may be one. A client library that kept to it by itself would give up an instant
// before Err says why. Callers must be able to tell the end of this call from every other error.
func (x *callContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns the user's.
func (x *callContext) Value(key any) any { return x.become().Value(key) }

// become makes it a context of package context, once.
func (x *callContext) become() context.Context {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.underlying != nil {
		return x.underlying
	}
	parent := x.user
	if parent == nil {
		parent = x.base
	}
	var cancel context.CancelFunc
	if !x.until.IsZero() {
		x.underlying, cancel = context.WithDeadline(parent, x.until)
	} else {
		x.underlying, cancel = context.WithCancel(parent)
	}
	forget := context.AfterFunc(x.base, cancel)
	x.stop = func() { forget(); cancel() }
	if x.ended {
		x.stop()
	}
	return x.underlying
}

// end ends it, and releases what it needed. It may be called more than once.
func (x *callContext) end() {
	x.mu.Lock()
	x.ended = true
	stop := x.stop
	x.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// setUser makes ctx the user's. x must not have become a context of package context yet.
func (x *callContext) setUser(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.user = ctx
}

// asking asks the engine something once, in the caller's goroutine. Close ends that, and then the error is ErrClosed.
func (c *Client) asking(ctx context.Context, ask func(ctx context.Context) error) error {
	bounded := callContext{user: ctx, base: c.asks}
	defer bounded.end()
	err := ask(&bounded)
	if err != nil && c.asks.Err() != nil && ctx.Err() == nil {
		return ErrClosed
	}
	return err
}

// persist makes a call that may be repeated until the engine has answered, ctx has ended, or the client's lease is
// over. For so long the engine knows a repetition by its id (LatchCall.Horizon, Signal.Horizon). Each attempt takes at
// most settleAttempt. It blocks meanwhile.
func (c *Client) persist(ctx context.Context, op string, key driver.Key, ask func(context.Context) error) error {
	if err := c.checkOpen(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return wrap(op, key, err)
	}
	end, doubt := time.Now().Add(c.opts.Lease), false
	for wait := settleFirst; ; wait = min(2*wait, settleMost) {
		attempt := callContext{user: ctx, base: c.asks, until: time.Now().Add(settleAttempt)}
		err := ask(&attempt)
		attempt.end()
		switch {
		case err == nil:
			return nil
		// Close has begun.
		case c.asks.Err() != nil && ctx.Err() == nil:
			return wrap(op, key, ErrClosed)
		// The caller's time is over; whether an earlier attempt was carried out may be unknown.
		case ctx.Err() != nil:
			return doubtful(op, key, errors.Join(ctx.Err(), err), doubt)
		// The engine would say the same again.
		case driver.Refusal(err) != nil:
			return doubtful(op, key, err, doubt)
		// So it would here.
		case isPermanent(err) && !errors.Is(err, context.Canceled):
			return finalError(op, key, err, doubt)
		// Later the engine may have forgotten the id, and a repetition would count twice.
		case !time.Now().Before(end):
			return doubtful(op, key, err, doubt)
		}
		doubt = doubt || leavesDoubt(err)
		pausing := callContext{user: ctx, base: c.asks}
		pause(&pausing, wait) // if it ends early, the next attempt does too and says why
		pausing.end()
	}
}

// finalError returns the error of a call that the engine has refused for good. The refusal of a repetition says nothing
// of an earlier attempt, which may have been carried out or may still arrive. Then the outcome is unknown. A loss is
// final for every attempt.
func finalError(op string, key driver.Key, err error, doubt bool) error {
	if doubt && driver.IsDefinite(err) && !errors.Is(err, ErrClosed) {
		return doubtful(op, key, err, doubt)
	}
	return wrap(op, key, err)
}
