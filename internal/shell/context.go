package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// Contexts of a hold (Lease.Context, MultiLease.Context): they carry the owner and end with the hold. Cond.Wait needs
// more of them than that, because it gives the hold up while it waits with a context that ends then. So WaitContext
// finds what else bounds the wait.

// LeaseContext is what is known of a context made by Lease.Context or MultiLease.Context. Exactly one of lease and
// multi is set, except for the listeners of a MultiLease, which have only cancel.
type LeaseContext struct {
	Ending core.Ending
	parent context.Context //nolint:containedctx // what bounds a wait that gives the hold up
	done   <-chan struct{} // the context's own Done: a context with another one has an end of its own
	// whose context it is; of a Multi, all of its holds, and how to make another
	hold  *core.Hold
	Holds []*core.Hold
	Again func(parent context.Context) context.Context
}

type leaseContextKey struct{}

// ownerContext is the innermost part of such a context: it carries the owner.
type ownerContext struct {
	context.Context //nolint:containedctx // it is one
	owner           *core.Owner
	from            *LeaseContext
}

// Value returns the owner and the LeaseContext, and else what the parent has.
func (x *ownerContext) Value(key any) any {
	switch key.(type) {
	case core.OwnerKey:
		return x.owner
	case leaseContextKey:
		return x.from
	}
	return x.Context.Value(key)
}

// Begin makes the context of w, with parent and o.
func (w *LeaseContext) Begin(parent context.Context, o *core.Owner) context.Context {
	ctx, cancel := context.WithCancelCause(&ownerContext{parent, o, w})
	w.Ending.Cancel, w.parent, w.done = cancel, parent, ctx.Done()
	return ctx
}

func leaseContextOf(ctx context.Context) *LeaseContext {
	w, _ := ctx.Value(leaseContextKey{}).(*LeaseContext)
	return w
}

// endsWith reports whether the context ends when l is given up: by itself, or because it was made from one that does.
func (w *LeaseContext) endsWith(l *core.Hold) bool {
	return w != nil && (w.ends(l) || leaseContextOf(w.parent).endsWith(l))
}

func (w *LeaseContext) ends(l *core.Hold) bool {
	return w.hold == l || slices.Contains(w.Holds, l)
}

// WaitContext returns a context that bounds a wait with ctx although l is given up during the wait. That is ctx itself,
// unless ctx was made by l, or by another hold from a context of l's. Then it is the context that ctx was made from,
// still with the ends of the other holds. The caller calls cancel when the wait is over.
//
// If anything with an end of its own was put around ctx, such as a timeout, ctx is returned unchanged. Its own end
// cannot be told from l's. See errEndsWithIt.
func WaitContext(ctx context.Context, l *core.Hold) (bounds context.Context, cancel context.CancelFunc) {
	w := leaseContextOf(ctx)
	if !w.endsWith(l) || ctx.Done() != w.done { // more than values may have been added
		return ctx, func() {}
	}
	outer, forget := WaitContext(w.parent, l)
	bounded, stop := context.WithCancel(outer)
	switch { // the wait is still under the other hold, so it ends with that one
	case w.ends(l):
	case w.hold != nil:
		bounded = HoldContext(bounded, w.hold)
	default:
		bounded = w.Again(bounded)
	}
	return &following{bounded, context.WithoutCancel(ctx)}, func() { stop(); forget() }
}

// errEndsWithIt is for a wait with a context that was made from one of the Lease's and has an end of its own, or was
// cut off from it. It ends with the Lease, and nobody can tell whether it would also have ended by itself. So the wait
// cannot go on.
var errEndsWithIt = errors.New("its context was made from one of the Lease's, which end when the Lease is given up, " +
	"so nothing is held any more: pass the Lease's own, or make yours from what that was made from")

// endedWith says why a wait with ctx that has given l up is over.
func endedWith(ctx context.Context, l *core.Hold) error {
	if leaseContextOf(ctx).endsWith(l) && errors.Is(context.Cause(ctx), driver.ErrReleased) {
		return fmt.Errorf("%w: %w", ctx.Err(), errEndsWithIt)
	}
	return ctx.Err()
}

// following has the end of one context and the values of another: a wait keeps what came with the call, such as its
// trace.
type following struct {
	context.Context                 //nolint:containedctx // it is one
	values          context.Context //nolint:containedctx // it is a part of one
}

// Value returns what came with the call.
func (x *following) Value(key any) any { return x.values.Value(key) }

// HoldContext is Lease.Context of h.
func HoldContext(parent context.Context, h *core.Hold) context.Context {
	w := &LeaseContext{hold: h}
	ctx := w.Begin(parent, h.Owner)
	c := ClientOf(h.Lock)
	c.Lock()
	h.Check(c.Now())
	ended := h.Ended()
	listeners := h.Listening()
	c.Unlock()
	if ended != nil {
		w.Ending.Cancel(ended)
		return ctx
	}
	// Forget the context when its parent has ended. Otherwise a long hold with many contexts would only ever grow.
	w.Ending.Stop = context.AfterFunc(parent, func() { listeners.Contexts.Forget(&w.Ending, c.Lock, c.Unlock) })
	// Only now, because whoever ends the hold calls stop.
	if err := WatchHold(h, w); err != nil {
		w.Ending.End(err)
	}
	return ctx
}

// HeldLater returns a live hold of o on a mutex that comes after m in the order of taking, or nil. No Multi waits for a
// lock of another kind, so those do not count.
func HeldLater(o *core.Owner, m *core.Lock) *core.Hold {
	o.Mu.Lock()
	last := o.Holds.Last()
	o.Mu.Unlock()
	if last == nil || last.Lock.Key().Kind != driver.KindMutex || core.Compare(last.Lock, m) <= 0 {
		return nil
	}
	if EndOf(last) == nil {
		return last
	}
	for _, l := range o.AllHeldLater(m) { // the last was lost, and has not been unlocked yet
		if EndOf(l) == nil {
			return l
		}
	}
	return nil
}

// Together calls f for each of the leases, side by side if there are several, and returns their errors in order. The
// first runs in the caller's goroutine.
func Together(leases []*core.Hold, f func(*core.Hold) error) error {
	errs := make([]error, len(leases))
	var all sync.WaitGroup
	for i, l := range leases[1:] {
		all.Go(func() { errs[i+1] = f(l) })
	}
	errs[0] = f(leases[0])
	all.Wait()
	return errors.Join(errs...)
}

// OwnerFrom returns the owner that ctx carries, or nil.
func OwnerFrom(ctx context.Context) *core.Owner {
	PanicOn(CheckContext(ctx))
	o, _ := ctx.Value(core.OwnerKey{}).(*core.Owner)
	return o
}

// heldBy returns a hold of o on key that has not been unlocked yet: a live one, or else a lost one. A lost hold stays
// with its owner until it is unlocked, so that re-entry after a loss is told of the loss.
func (c *Client) heldBy(o *core.Owner, key driver.Key) *core.Hold {
	if !o.Has(&c.Machine, key) { // as nearly always; it costs less than Machine.Mu
		return nil
	}
	c.Lock()
	defer c.Unlock()
	if l := c.LiveHold(o, key); l != nil {
		return l
	}
	return o.First(&c.Machine, key, func(*core.Hold) bool { return true })
}

// WatchHold has w cancelled when the hold ends, or says how it has ended.
func WatchHold(l *core.Hold, w *LeaseContext) error {
	c := ClientOf(l.Lock)
	c.Lock()
	defer c.Unlock()
	l.Check(c.Now())
	if err := l.Ended(); err != nil {
		return err
	}
	l.Listening().Contexts.Add(&w.Ending)
	return nil
}
