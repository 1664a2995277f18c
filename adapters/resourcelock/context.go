package resourcelock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock"
)

// Context returns a context to run the elector with, once: it ends with parent, with cancel, and the moment this
// process learns that the elector's lead is lost; its cause is then the *interlock.LostError. It does not end while
// nobody or another leads, nor when the elector gives the lead back. A nil parent panics.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contexts[&cancel] = struct{}{}
	if l.led && l.lease != nil && errors.Is(l.lease.Err(), interlock.ErrLost) {
		cancel(lostLead(l.lease.Err()))
	}
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.contexts, &cancel)
	})
	return ctx, func() { cancel(context.Canceled) }
}

// ended hears that a hold has ended. Only the loss of a lead that an elector believes in ends its context.
func (l *Lock) ended(lease *interlock.Lease, cause error) {
	if !errors.Is(cause, interlock.ErrLost) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lease != lease || !l.led {
		return
	}
	for cancel := range l.contexts {
		(*cancel)(lostLead(cause))
	}
}

func lostLead(cause error) error { return fmt.Errorf("resourcelock: the lead was lost: %w", cause) }
