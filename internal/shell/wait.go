package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// A waiter is the caller's side of a Lock that is not answered at once. It blocks in wait until a grant or an error
// comes, or its context ends. internal/core/line.go and request.go answer it, and decide which errors it survives.

// NewWaiter returns an attempt for o, or for a new owner if o is nil.
func NewWaiter(m *core.Lock, o *core.Owner, at core.Call) *core.Waiter {
	return &core.Waiter{Hold: m.NewHold(o), Call: at, Fresh: o == nil}
}

// resultOf returns what the caller of Lock or TryLock gets. It must not be called before w has been answered.
func resultOf(w *core.Waiter) (*core.Hold, error) {
	if w.Err != nil {
		return nil, w.Err
	}
	return w.Hold, nil
}

// waitFor blocks until w is answered or ctx ends. If ctx ends in the instant of the grant, the caller may get either.
// If it gets the context's error, the grant is given back.
func waitFor(ctx context.Context, w *core.Waiter) (*core.Hold, error) {
	select {
	// Answered by a grant, an error, Close, or a deadlock search.
	case <-w.Ready:
		return resultOf(w)
	// The caller gives up. Whether it was answered meanwhile is only known under Machine.Mu.
	case <-ctx.Done():
	}
	c := ClientOf(w.Hold.Lock)
	c.Lock()
	if w.Hold.Lock.Terms.Single {
		return giveUpWaiting(w, ctx.Err())
	}
	// The error is made first: leave may end the fetch, which is what timeout looks at.
	if !w.Answered {
		defer c.Unlock()
		err := timeoutOf(w, ctx.Err())
		w.Withdraw()
		return nil, err
	}
	defer c.Unlock()
	if w.Err != nil {
		return nil, w.Err
	}
	w.Decline()
	return nil, Wrap("lock", w.Hold.Lock.Key(), ctx.Err())
}

// withdrawGrace is how long a candidate whose context has ended waits until the engine has forgotten it: as long as
// Unlock waits in that case.
const withdrawGrace = UnlockGrace

// giveUpWaiting ends the wait of a candidate whose context has ended, and returns when nothing is left in the engine
// that could be granted: whoever has given up must not be named as the leader. If the engine was quicker, the caller
// leads, and others may have seen that. The caller holds Machine.Mu, which withdraw gives up.
func giveUpWaiting(w *core.Waiter, cause error) (*core.Hold, error) {
	c, f := ClientOf(w.Hold.Lock), w.Request
	if w.Answered {
		defer c.Unlock()
		return resultOf(w)
	}
	err := timeoutOf(w, cause) // made first: see wait
	left := []chan struct{}{f.Undone}
	if !f.Idle || f.Settling { // else nothing of f was sent, or is left
		left = append(left, f.Over)
	}
	f.Withdrawn = true
	f.Cancel()
	c.Unlock()
	awaitAll(left, withdrawGrace)
	c.Lock()
	defer c.Unlock()
	switch {
	case !w.Answered:
		w.Withdraw()
	case w.Err == nil:
		return w.Hold, nil
	}
	return nil, err
}

// awaitAll blocks until all are closed, or for most: the engine is silent then, and the rest goes on in the background.
// A nil one counts as closed.
func awaitAll(all []chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, one := range all {
		if one == nil {
			continue
		}
		select {
		case <-one:
		case <-timer.C:
			return
		}
	}
}

// timeoutOf returns the error of a wait whose context has ended. It is a *HeldError if another owner is known to be in
// the way. It is an *UnavailableError if the engine has not said so, or has gone silent since. The newest knowledge
// wins: a holder in this process, then the engine's answer to the request under way, then its earlier ones. The caller
// holds Machine.Mu.
func timeoutOf(w *core.Waiter, cause error) error {
	f, m := w.Request, w.Hold.Lock
	if f == nil {
		if g := ClientOf(m).Passing(m); g != nil && (g.IsHeld() || g.CooldownEnd() < trust.Never) {
			held := heldErrorOf(g.Holder())
			held.Cause = cause
			return held
		}
		f = w.Line.Request
	}
	var held driver.HeldError
	switch {
	// The engine has not answered, so "held" would be a guess. A request under way may have been carried out, which
	// leaves doubt.
	case w.Broken != nil || !w.HasBegun() && (f == nil || f.Held == nil):
		underWay := f != nil && !f.Idle
		return doubtful("lock", m.Key(), errors.Join(cause, w.Broken), w.Doubt || underWay)
	case f != nil && f.Held != nil:
		held = *f.Held
	case w.HeldBy != nil:
		held = *w.HeldBy
	default:
		held = *heldErrorOf(w.Blocker)
	}
	held.Cause = cause
	return &held
}

// LockOptions.Wait: a bound on the waiting that belongs to the lock and not to a context. So its end is no context's
// end, and errors must not match one: code that hands on a context's error would take its caller for gone.

// WaitBound is the bound of one call. The zero value bounds nothing.
type WaitBound struct {
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

// BoundWait returns the bound of a call, and the context that ends with it. wait is 0 if ctx alone bounds the waiting.
func BoundWait(ctx context.Context, wait time.Duration) (WaitBound, context.Context) {
	if wait == 0 {
		return WaitBound{}, ctx
	}
	b := WaitBound{over: &waitOverError{wait}, start: time.Now()}
	b.ctx, b.stop = context.WithTimeoutCause(ctx, wait, b.over)
	return b, b.ctx
}

// End releases what the bound needed, and returns err as the caller sees it: if the bound has ended the call, a
// *HeldError that says how long it has waited, or an *UnavailableError if the engine has not said that another owner
// has the lock. What a context's error has no part in stays as it is.
func (b *WaitBound) End(op string, key driver.Key, err error) error {
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
func (b *WaitBound) instead(err error) error {
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

// RecallWait is how long such a try waits at least. The engine has told the holder's client, whose release takes one
// message there and one back.
const RecallWait = 50 * time.Millisecond
