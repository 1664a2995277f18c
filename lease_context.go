package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// leaseContext is a context made by Lease.Context or MultiLease.Context.
type leaseContext struct {
	cancel context.CancelCauseFunc
	parent context.Context //nolint:containedctx // what bounds a wait that gives the hold up
	done   <-chan struct{} // the context's own
	lease  *Lease          // whose it is, or
	multi  *MultiLease     // whose
}

type leaseContextKey struct{}

// ownerContext is the innermost part of such a context: it carries the owner.
type ownerContext struct {
	context.Context //nolint:containedctx // it is one
	owner           *owner
	from            *leaseContext
}

// Value tells the owner, and which leaseContext it is.
func (x *ownerContext) Value(key any) any {
	switch key.(type) {
	case ownerKey:
		return x.owner
	case leaseContextKey:
		return x.from
	}
	return x.Context.Value(key)
}

// begin makes the context.
func (w *leaseContext) begin(parent context.Context, o *owner) context.Context {
	ctx, cancel := context.WithCancelCause(&ownerContext{parent, o, w})
	w.cancel, w.parent, w.done = cancel, parent, ctx.Done()
	return ctx
}

func leaseContextOf(ctx context.Context) *leaseContext {
	w, _ := ctx.Value(leaseContextKey{}).(*leaseContext)
	return w
}

// endsWith reports whether the context ends when l is given up, be it by itself or by one that it was made from.
func (w *leaseContext) endsWith(l *Lease) bool {
	return w != nil && (w.ends(l) || leaseContextOf(w.parent).endsWith(l))
}

func (w *leaseContext) ends(l *Lease) bool {
	return w.lease == l || w.multi != nil && slices.Contains(w.multi.leases, l)
}

// beyond returns what bounds a wait with ctx that gives l up: ctx, or if that is one of l's, or of another hold's made
// from one of l's, what it was made from. cancel is to be called in the end.
func (l *Lease) beyond(ctx context.Context) (bounds context.Context, cancel context.CancelFunc) {
	w := leaseContextOf(ctx)
	if !w.endsWith(l) || ctx.Done() != w.done { // more than values may have been added
		return ctx, func() {}
	}
	outer, forget := l.beyond(w.parent)
	bounded, stop := context.WithCancel(outer)
	switch { // under another hold it goes on being
	case w.ends(l):
	case w.lease != nil:
		bounded = w.lease.Context(bounded)
	default:
		bounded = w.multi.Context(bounded)
	}
	return &following{bounded, context.WithoutCancel(ctx)}, func() { stop(); forget() }
}

// errEndsWithIt is for a wait whose context was made from one of the Lease's and can be cancelled by itself, or has
// been cut off from it: only when the Lease has been given up it shows which. If it has ended with the Lease, nobody
// can tell any more whether it would also have ended by itself, so the wait cannot go on.
var errEndsWithIt = errors.New("its context was made from one of the Lease's, which end when the Lease is given up, " +
	"so nothing is held " +
	"any more: pass the Lease's own, or make yours from what that was made from")

// endedWith says why a wait with ctx that has given l up is over.
func (l *Lease) endedWith(ctx context.Context) error {
	if leaseContextOf(ctx).endsWith(l) && errors.Is(context.Cause(ctx), ErrReleased) {
		return fmt.Errorf("%w: %w", ctx.Err(), errEndsWithIt)
	}
	return ctx.Err()
}

// following has the end of one context and the values of another.
type following struct {
	context.Context                 //nolint:containedctx // it is one
	values          context.Context //nolint:containedctx // it is a part of one
}

// Value finds what came with the call.
func (x *following) Value(key any) any { return x.values.Value(key) }
