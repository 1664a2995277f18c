package core

import (
	"context"
	"sync"
	"time"
)

// CallContext is the context of a question that the engine is asked in the goroutine of a user's call. It ends with the
// user's context, with the client's, when it is told to, and after its time.
//
// Most questions are answered before anybody has to wait in a select for that end. So it costs no allocation until a
// driver asks for more than Err: then it becomes a context of package context.
type CallContext struct {
	User  context.Context //nolint:containedctx // it is a context; nil if there is no user's
	Base  context.Context //nolint:containedctx // the client's
	Until time.Time       // its own end, if it has one

	mu         sync.Mutex      // guards what follows
	underlying context.Context //nolint:containedctx // what it has become
	stop       func()          // of underlying
	ended      bool            // told to end
}

// Err says whether it has ended, and why.
func (x *CallContext) Err() error {
	x.mu.Lock()
	underlying, ended := x.underlying, x.ended
	x.mu.Unlock()
	switch {
	case underlying != nil:
		return underlying.Err()
	case ended:
		return context.Canceled
	case x.User != nil && x.User.Err() != nil:
		return x.User.Err()
	case !x.Until.IsZero() && !time.Now().Before(x.Until):
		return context.DeadlineExceeded
	}
	return x.Base.Err()
}

// Done returns a channel that is closed when it has ended. The first call makes a context of package context.
func (x *CallContext) Done() <-chan struct{} { return x.become().Done() }

// Deadline returns none, although there may be one. A client library that kept to it by itself would give up an instant
// before Err says why. Callers must be able to tell the end of this call from every other error.
func (x *CallContext) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns the user's.
func (x *CallContext) Value(key any) any { return x.become().Value(key) }

// become makes it a context of package context, once.
func (x *CallContext) become() context.Context {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.underlying != nil {
		return x.underlying
	}
	parent := x.User
	if parent == nil {
		parent = x.Base
	}
	var cancel context.CancelFunc
	if !x.Until.IsZero() {
		x.underlying, cancel = context.WithDeadline(parent, x.Until)
	} else {
		x.underlying, cancel = context.WithCancel(parent)
	}
	forget := context.AfterFunc(x.Base, cancel)
	x.stop = func() { forget(); cancel() }
	if x.ended {
		x.stop()
	}
	return x.underlying
}

// End ends it, and releases what it needed. It may be called more than once.
func (x *CallContext) End() {
	x.mu.Lock()
	x.ended = true
	stop := x.stop
	x.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// SetUser makes ctx the user's. x must not have become a context of package context yet.
func (x *CallContext) SetUser(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.User = ctx
}
