package interlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// callContext is the context of a question that the engine is asked in the goroutine of a user's call. It ends with the
// user's context, with the client's, when it is told to, and after its time.
//
// Most questions are answered before anybody has to wait for that end in a select. So it costs nothing until a driver
// asks for more than Err: then it becomes a context of package context.
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

// Err says whether it has ended.
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

// Done is closed when it has ended.
func (x *callContext) Done() <-chan struct{} { return x.become().Done() }

// Deadline tells none, although there may be one: a client library that kept to it by itself would give up an instant
// before Err says why, and what ends because this call has ended must be known from everything else.
func (x *callContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value is the user's.
func (x *callContext) Value(key any) any { return x.become().Value(key) }

// become makes it a context of package context.
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

// end ends it, and gives back what it needed.
func (x *callContext) end() {
	x.mu.Lock()
	x.ended = true
	stop := x.stop
	x.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// setUser makes ctx the user's. It must not have become a context yet.
func (x *callContext) setUser(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.user = ctx
}

// asking asks the engine something once. Close ends that, and then it is ErrClosed.
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
// over: so long a call may be repeated and be known for the same.
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
		case c.asks.Err() != nil && ctx.Err() == nil:
			return wrap(op, key, ErrClosed)
		case ctx.Err() != nil:
			return doubtful(op, key, errors.Join(ctx.Err(), err), doubt)
		case driver.Refusal(err) != nil:
			return doubtful(op, key, err, doubt)
		case stays(err) && !errors.Is(err, context.Canceled):
			return stayed(op, key, err, doubt)
		case !time.Now().Before(end):
			return doubtful(op, key, err, doubt)
		}
		doubt = doubt || leavesDoubt(err)
		pausing := callContext{user: ctx, base: c.asks}
		pause(&pausing, wait) // if it ends early, the next attempt does too, and says why
		pausing.end()
	}
}

// stayed is the error of a call that the engine has refused for good. That it has refused a repetition says nothing of
// an earlier attempt, which may have been carried out or may arrive yet. What is lost that one finds lost as well.
func stayed(op string, key driver.Key, err error, doubt bool) error {
	if doubt && driver.IsDefinite(err) && !errors.Is(err, ErrClosed) {
		return doubtful(op, key, err, doubt)
	}
	return wrap(op, key, err)
}
