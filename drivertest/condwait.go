package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Waits for a signal, in the background (conditions.go uses them).

// condWait is a wait for a signal that is under way.
type condWait struct {
	*wait
	parked chan struct{} // closed when the hold has been given up
}

// startCondWait gives h up for a wait for a signal, in the background.
func (h *hold) startCondWait(r *driver.Request) *condWait {
	h.c.tr.Helper()
	conder, can := h.c.d.(driver.Conder)
	if !can {
		h.c.tr.Fatalf("Traits names the kind %s, and the driver has no CondWait and CondSignal", driver.KindCond)
	}
	w := &condWait{parked: make(chan struct{})}
	w.wait = h.c.startBy(h.c.tr.Context(), r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return conder.CondWait(ctx, h.give(), r, func() { close(w.parked) })
	})
	return w
}

// park is startCondWait, and returns when the wait has begun.
func (h *hold) park(r *driver.Request) *condWait {
	h.c.tr.Helper()
	w := h.startCondWait(r)
	w.isParked()
	return w
}

// isParked returns when the hold has been given up.
func (w *condWait) isParked() {
	tr := w.c.tr
	tr.Helper()
	timeout := time.NewTimer(tr.h.Patience)
	defer timeout.Stop()
	select {
	case <-w.parked:
	case <-w.done:
		select {
		case <-w.parked:
		default:
			tr.Fatalf("%s: a wait for a signal ended before it began: %s", w.c.name, text(w.err))
		}
	case <-timeout.C:
		tr.Fatalf("%s: a wait for a signal has not begun within %v", w.c.name, tr.h.Patience)
	}
}

// givesUp ends a wait as the portable layer does: context first, then undo.
func (w *condWait) givesUp() {
	w.c.tr.Helper()
	w.cancel()
	if !w.ends(prompt) {
		w.c.tr.Fatalf("a wait for a signal has not returned %v after its context ended", prompt)
	}
	w.c.undo(w.r)
}

// parks makes n waits for a signal, each of another client, in their order.
func (tr *trial) parks(n int) []*condWait {
	tr.Helper()
	waits := make([]*condWait, n)
	for i := range waits {
		c := tr.client()
		waits[i] = c.take(c.ask(tr.mutex())).park(c.ask(tr.mutex()))
	}
	return waits
}

// signalAs sends s and fails if that is not confirmed.
func (c *client) signalAs(s *driver.Signal) {
	c.tr.Helper()
	ctx, cancel := c.tr.bound()
	defer cancel()
	c.tr.must(c.d.(driver.Conder).CondSignal(ctx, s), c.name+": a signal")
}

// signal wakes one waiter, or all.
func (c *client) signal(all bool) {
	c.tr.Helper()
	c.signalAs(&driver.Signal{Key: c.tr.mutex(), ID: freshName(), All: all, Horizon: longLease})
}

// signalAtOnce sends n signals in the background. The function that it returns waits for them.
func (tr *trial) signalAtOnce(c *client, n int) (sent func() error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { // ends with its context
			ctx, cancel := tr.bound()
			defer cancel()
			errs[i] = c.d.(driver.Conder).CondSignal(ctx,
				&driver.Signal{Key: tr.mutex(), ID: freshName(), Horizon: longLease})
		})
	}
	return func() error {
		all.Wait()
		return errors.Join(errs...)
	}
}
