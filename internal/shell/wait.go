package shell

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// A waiter is the caller's side of a Lock that is not answered at once. It blocks in wait until a grant or an error
// comes, or its context ends. internal/core/line.go and acquire_fetch.go answer it; acquire_retry.go decides which errors it
// survives.

// newWaiter returns an attempt for o, or for a new owner if o is nil.
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

// waitFor blocks until w is answered or ctx ends. If ctx ends in the instant of the grant, the caller may get either. If
// it gets the context's error, the grant is given back.
func waitFor(ctx context.Context, w *core.Waiter) (*core.Hold, error) {
	select {
	// Answered by a grant, an error, Close, or a deadlock search.
	case <-w.Ready:
		return resultOf(w)
	// The caller gives up. Whether it was answered meanwhile is only known under Machine.Mu.
	case <-ctx.Done():
	}
	c := ClientOfLock(w.Hold.Lock)
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

// giveUpWaiting ends the wait of a candidate whose context has ended, and returns when nothing is left in the engine that
// could be granted: whoever has given up must not be named as the leader. If the engine was quicker, the caller leads,
// and others may have seen that. The caller holds Machine.Mu, which withdraw gives up.
func giveUpWaiting(w *core.Waiter, cause error) (*core.Hold, error) {
	c, f := ClientOfLock(w.Hold.Lock), w.Request
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
		if g := ClientOfLock(m).Machine.Passing(m); g != nil && (g.Holds.First != nil || g.CooldownEnd() < trust.Never) {
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
