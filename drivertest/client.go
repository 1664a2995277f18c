package drivertest

import (
	"context"
	"errors"
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
