package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// What a behaviour does with one client, in the words of package driver: ask, try, release, undo, renew, each with its
// own verdict.

// client is one driver as the behaviours use it.
type client struct {
	tr   *trial
	d    driver.Driver
	name string
}

// hold is a granted request.
type hold struct {
	c    *client
	r    *driver.Request
	g    driver.Grant
	back time.Time // when Acquire returned, so not before the engine's own instant of granting
}

// ask returns a request for the whole of a lock, by an anonymous owner, with a lease that does not run out.
func (c *client) ask(key driver.Key) *driver.Request {
	return &driver.Request{
		Key: key, ID: freshName(), Owner: "owner of " + c.name, Client: c.name,
		Mode: driver.Exclusive, Weight: 1, Lease: longLease, Tokens: 1,
	}
}

// asOwner is ask by a named owner.
func (c *client) asOwner(owner string, key driver.Key) *driver.Request {
	r := c.ask(key)
	r.Owner, r.Named = owner, true
	return r
}

// briefly is ask with the short lease.
func (c *client) briefly(key driver.Key) *driver.Request {
	r := c.ask(key)
	r.Lease = c.tr.h.Lease
	return r
}

// acquire asks, and gives up after the harness's patience.
func (c *client) acquire(r *driver.Request) (*hold, error) {
	ctx, cancel := c.tr.bound()
	defer cancel()
	g, err := c.d.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return &hold{c: c, r: r, g: g, back: time.Now()}, nil
}

// take acquires r and fails if it is not granted.
func (c *client) take(r *driver.Request) *hold {
	c.tr.Helper()
	h, err := c.acquire(r)
	if err != nil {
		c.tr.Fatalf("%s: acquire %s %q, which must be granted: %v", c.name, r.Kind, r.Name, err)
	}
	return h
}

// try asks for the whole of key without waiting.
func (c *client) try(key driver.Key) (*hold, error) { return c.tryFor(c.ask(key)) }

// tryFor asks for r without waiting.
func (c *client) tryFor(r *driver.Request) (*hold, error) {
	r.Try = true
	return c.acquire(r)
}

// findsFree fails unless key is free, and leaves it free. It asks the engine and no listing, so it works everywhere.
func (c *client) findsFree(key driver.Key, when string) {
	c.tr.Helper()
	h, err := c.try(key)
	if err != nil {
		c.tr.Fatalf("%s: %s %q must be free, but a try says: %v", when, key.Kind, key.Name, err)
	}
	h.release()
}

// findsHeld fails unless key is held by somebody else.
func (c *client) findsHeld(key driver.Key, when string) {
	c.tr.Helper()
	c.isRefused(c.ask(key), when)
}

// isRefused fails unless a try of r says that the lock is held.
func (c *client) isRefused(r *driver.Request, when string) {
	c.tr.Helper()
	h, err := c.tryFor(r)
	if err == nil {
		h.abandon()
		c.tr.Fatalf("%s: a try of %s %q by %s was granted, and must be refused", when, r.Kind, r.Name, c.name)
	}
	if !errors.Is(err, driver.ErrHeld) || !driver.IsDefinite(err) {
		c.tr.Fatalf("%s: a try of a held lock says %q, want a definite ErrHeld", when, err)
	}
}

// comesToBeRefused tries until that says that the lock is held, because of a wait that was announced. Some engines can
// announce a wait only just before it begins; until then a try may be granted, and is given back.
func (c *client) comesToBeRefused(ask func() *driver.Request, when string) {
	c.tr.Helper()
	for end := time.Now().Add(c.tr.h.Patience); time.Now().Before(end); c.tr.pass(settle) {
		h, err := c.tryFor(ask())
		if errors.Is(err, driver.ErrHeld) && driver.IsDefinite(err) {
			return
		}
		if err != nil {
			c.tr.Fatalf("%s: a try of a held lock says %q, want a definite ErrHeld", when, err)
		}
		h.release()
	}
	r := ask()
	c.tr.Fatalf("%s: tries of %s %q by %s were granted for %v, and must be refused",
		when, r.Kind, r.Name, c.name, c.tr.h.Patience)
}

// getsIn tries until key is granted, at most for within. It tries and does not wait, so it tests the end of a lease and
// not who is woken by it.
func (c *client) getsIn(key driver.Key, within time.Duration, when string) *hold {
	c.tr.Helper()
	for end := time.Now().Add(within); ; c.tr.pass(c.tr.h.Lease / 20) {
		h, err := c.try(key)
		if err == nil {
			return h
		}
		if !errors.Is(err, driver.ErrHeld) {
			c.tr.Fatalf("%s: a try says: %v", when, err)
		}
		if time.Now().After(end) {
			c.tr.Fatalf("%s: %s gets no lock within %v: %v", when, c.name, within, err)
		}
	}
}

// end releases the hold with the given ID.
func (c *client) end(key driver.Key, id string) error {
	ctx, cancel := c.tr.bound()
	defer cancel()
	return c.d.Release(ctx, &driver.Release{Key: key, ID: id})
}

// endUntilKnown is end as the portable layer does it. An engine may be too busy to answer; while the outcome is unknown
// it asks again. A hold that a repetition finds over was ended by an earlier copy.
func (c *client) endUntilKnown(key driver.Key, id string) error {
	unknown := false
	for end := time.Now().Add(c.tr.h.Patience); ; c.tr.pass(settle) {
		err := c.end(key, id)
		switch {
		case err == nil, unknown && errors.Is(err, driver.ErrLost):
			return nil
		case !errors.Is(err, driver.ErrUnavailable) || errors.Is(err, driver.ErrLost), time.Now().After(end):
			return err
		}
		c.tr.Logf("asked again after: %v", err)
		unknown = true
	}
}

// undo takes back a request whose outcome is unknown, as the portable layer does.
func (c *client) undo(r *driver.Request) {
	c.tr.Helper()
	ctx, cancel := c.tr.bound()
	defer cancel()
	err := c.d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: longLease})
	c.tr.must(err, c.name+": undo")
}

// renewer returns the driver's Renewer, which a Leases engine must have, and a Sessions engine that recalls.
func (c *client) renewer() driver.Renewer {
	c.tr.Helper()
	r, ok := c.d.(driver.Renewer)
	if !ok {
		c.tr.Fatalf("this engine has leases, or recalls what is retained, but its driver has no Renew")
	}
	return r
}

// renew asks for more time for one hold.
func (c *client) renew(key driver.Key, id string, lease time.Duration) error {
	c.tr.Helper()
	return c.renewAs(driver.Renewal{Key: key, ID: id, Lease: lease})
}

// renewAs is renew with what operators are to see.
func (c *client) renewAs(r driver.Renewal) error {
	c.tr.Helper()
	ctx, cancel := c.tr.bound()
	defer cancel()
	return renewOne(ctx, c.renewer(), r)
}

// renewOne renews one hold and returns the answer.
func renewOne(ctx context.Context, renewer driver.Renewer, r driver.Renewal) error {
	answer := errors.New("done was not called")
	// done runs in another goroutine, but before Renew returns.
	renewer.Renew(ctx, []driver.Renewal{r}, func(_ int, err error) { answer = err })
	return answer
}

// release ends the hold and fails if that is not confirmed.
func (h *hold) release() {
	h.c.tr.Helper()
	h.c.tr.must(h.c.endUntilKnown(h.r.Key, h.r.ID), h.c.name+": release of a living hold")
}

// abandon releases what should not have been granted, so that one fault is not reported as many.
func (h *hold) abandon() { _ = h.c.end(h.r.Key, h.r.ID) }

// isGone fails unless release and, on engines with leases, renewal say that the hold is lost.
func (h *hold) isGone(when string) {
	h.c.tr.Helper()
	if h.c.tr.traits.Lifetime == driver.Leases {
		h.c.tr.mustMatch(h.c.renew(h.r.Key, h.r.ID, longLease), driver.ErrLost, when+": renewal of the ended hold")
	}
	h.c.tr.mustMatch(h.c.end(h.r.Key, h.r.ID), driver.ErrLost, when+": release of the ended hold")
}

// over returns the instant at which the lease has ended for the engine too, however late the request arrived there.
func (h *hold) over() time.Time { return h.back.Add(h.g.Lease) }

// trustedUntil returns the instant before which nobody else may get in.
func (h *hold) trustedUntil() time.Time { return h.g.Sent.Add(h.g.Lease) }

// notBefore fails if h was granted before the instant trusted, while somebody else still trusted the lock. It compares
// instants of this machine only, and errs on the safe side: back is later than the grant.
func (h *hold) notBefore(trusted time.Time, what string) {
	h.c.tr.Helper()
	if early := trusted.Sub(h.back); early > 0 {
		h.c.tr.Fatalf("%s: %s was let in %v before the trust in the earlier hold ended, so both believe that they "+
			"have the lock: look whether Grant.Sent is taken before the request is sent, and whether the engine "+
			"keeps a grant or a renewal that long",
			what, h.c.name, early)
	}
}

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
