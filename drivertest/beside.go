package drivertest

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Requests beside a hold (driver.Converter).

// beside asks for r beside h, and gives up after the harness's patience.
func (h *hold) beside(r *driver.Request) (*hold, error) {
	ctx, cancel := h.c.tr.bound()
	defer cancel()
	g, err := h.besideIn(ctx, r)
	if err != nil {
		return nil, err
	}
	return &hold{c: h.c, r: r, g: g, back: time.Now()}, nil
}

// besideIn is beside with a context of its own.
func (h *hold) besideIn(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return h.c.d.(driver.Converter).Convert(ctx, h.r.ID, r)
}

// take is beside, and fails if r is not granted.
func (h *hold) take(r *driver.Request, when string) *hold {
	h.c.tr.Helper()
	next, err := h.beside(r)
	if err != nil {
		h.c.tr.Fatalf("%s: a request of mode %d beside a hold must be granted: %v", when, r.Mode, err)
	}
	return next
}

// queue starts r beside h and returns when it waits in the engine.
func (h *hold) queue(r *driver.Request) *wait {
	h.c.tr.Helper()
	w := h.c.startBy(h.c.tr.Context(), r, h.besideIn)
	_ = w.isWaiting()
	return w
}

// isDenied fails unless r beside h is refused with target.
func (h *hold) isDenied(r *driver.Request, target error, what string) {
	h.c.tr.Helper()
	next, err := h.beside(r)
	if err == nil {
		next.abandon()
	}
	h.c.tr.mustMatch(err, target, what)
}

// isLost fails unless w is refused because the hold beside which it was asked for is over.
func (w *wait) isLost(which string) {
	tr := w.c.tr
	tr.Helper()
	if !w.ends(tr.h.Patience) {
		tr.Fatalf("an upgrade %s still waits", which)
	}
	if w.err == nil {
		w.h.abandon()
	}
	tr.mustMatch(w.err, driver.ErrLost, "an upgrade "+which)
}
