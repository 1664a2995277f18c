package drivertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Waits in the background: how a behaviour knows that one has begun, still goes on, or was granted.

// wait is an Acquire that is under way, in a goroutine of its own.
type wait struct {
	c      *client
	r      *driver.Request
	cancel context.CancelFunc
	told   chan *driver.HeldError // what Waiting was called with: the first few
	done   chan struct{}          // closed when Acquire has returned; h and err are set before that
	h      *hold
	err    error
}

// start acquires r in the background, until it is granted, stopped, or the behaviour ends.
func (c *client) start(r *driver.Request) *wait {
	return c.startWith(c.tr.Context(), r)
}

// startWith is start with a context of its own.
func (c *client) startWith(parent context.Context, r *driver.Request) *wait {
	return c.startBy(parent, r, c.d.Acquire)
}

// startBy is startWith by another call than Acquire.
func (c *client) startBy(
	parent context.Context, r *driver.Request, ask func(context.Context, *driver.Request) (driver.Grant, error),
) *wait {
	ctx, cancel := context.WithCancel(parent)
	w := &wait{c: c, r: r, cancel: cancel, told: make(chan *driver.HeldError, 8), done: make(chan struct{})}
	r.Waiting = func(held *driver.HeldError) {
		select {
		case w.told <- held:
		default: // nobody reads so many
		}
	}
	go func() { // ends with the call, at the latest when the behaviour does
		defer close(w.done)
		g, err := ask(ctx, r)
		w.h, w.err = &hold{c: c, r: r, g: g, back: time.Now()}, err
	}()
	c.tr.Cleanup(w.stop)
	return w
}

// queue starts r and returns when it waits in the engine.
func (c *client) queue(r *driver.Request) *wait {
	c.tr.Helper()
	w := c.start(r)
	_ = w.isWaiting() // other behaviours are about who holds it
	return w
}

// isWaiting returns when the engine has said that the lock is held.
func (w *wait) isWaiting() *driver.HeldError {
	tr := w.c.tr
	tr.Helper()
	timeout := time.NewTimer(tr.h.Patience)
	defer timeout.Stop()
	select {
	case held := <-w.told:
		// Some engines, such as the kernel's file locks, can say so only just before they wait.
		tr.pass(settle)
		return held
	case <-w.done:
		tr.Fatalf("%s: an acquire of a held lock ended instead of waiting: %s", w.c.name, text(w.err))
	case <-timeout.C:
		tr.Fatalf("%s: an acquire of a held lock has not called Waiting within %v", w.c.name, tr.h.Patience)
	}
	return nil
}

// stillWaits fails if the wait ends within settle.
func (w *wait) stillWaits(when string) {
	w.c.tr.Helper()
	w.c.tr.pass(settle)
	select {
	case <-w.done:
		w.c.tr.Fatalf("%s: %s must still wait, but its acquire ended: %s", when, w.c.name, text(w.err))
	default:
	}
}

// granted returns the hold, and fails if there is none within the harness's patience.
func (w *wait) granted(when string) *hold {
	w.c.tr.Helper()
	return w.grantedWithin(w.c.tr.h.Patience, when)
}

// grantedWithin is granted with another time limit.
func (w *wait) grantedWithin(d time.Duration, when string) *hold {
	w.c.tr.Helper()
	if !w.ends(d) {
		w.c.tr.Fatalf("%s: %s still waits after %v, and should have been let in", when, w.c.name, d)
	}
	if w.err != nil {
		w.c.tr.Fatalf("%s: %s should have been let in: %v", when, w.c.name, w.err)
	}
	return w.h
}

// serveAll fails unless all waits are granted one after the other, in any order, each when the one before is released.
func (tr *trial) serveAll(when string, waits ...*wait) {
	tr.Helper()
	tr.serveAllWithin(tr.h.Patience, when, waits...)
}

// serveAllWithin is serveAll with a time limit for each.
func (tr *trial) serveAllWithin(d time.Duration, when string, waits ...*wait) {
	tr.Helper()
	for len(waits) > 0 {
		var next int
		tr.untilWithin(d, when+": one of those who wait is let in", func() error {
			if next = slices.IndexFunc(waits, func(w *wait) bool { return w.ends(0) }); next < 0 {
				return fmt.Errorf("%d still wait", len(waits))
			}
			return nil
		})
		waits[next].granted(when).release()
		waits = slices.Delete(waits, next, next+1)
	}
}

// missing returns an error for as long as the wait goes on; see trial.until.
func (w *wait) missing() error {
	if w.ends(0) {
		return nil
	}
	return fmt.Errorf("%s still waits", w.c.name)
}

// ends reports whether Acquire returns within d.
func (w *wait) ends(d time.Duration) bool {
	select {
	case <-w.done:
		return true
	default:
	}
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	select {
	case <-w.done:
		return true
	case <-timeout.C:
		return false
	}
}

// stop ends the wait without undoing it, as a crash or a lost connection does.
func (w *wait) stop() {
	w.cancel()
	if !w.ends(w.c.tr.h.Patience) {
		w.c.tr.Errorf("%s: Acquire has not returned %v after its context ended", w.c.name, w.c.tr.h.Patience)
	}
}
