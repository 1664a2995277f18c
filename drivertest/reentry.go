package drivertest

import "github.com/interlock-go/interlock/driver"

// The promise of re-entry: a named owner gets in again, and nobody else does.

func reentry() []behaviour {
	named := needing(driver.NamedOwners)
	return []behaviour{
		{sentence: "an owner that is not named never re-enters", run: anonymousOwnerNeverReenters},
		{
			sentence: "a named owner re-enters from another client with the same token and nonce",
			run:      namedOwnerReenters, needs: named,
		},
		{
			sentence: "a named and an unnamed owner of one name are strangers", run: namedAndUnnamedAreStrangers,
			needs: named,
		},
		{
			sentence: "the lock is free when the owner's last hold has ended, in any order", run: lastHoldFrees,
			needs: named,
		},
		{sentence: "re-entry does not wait behind those who wait", run: reentryBypassesTheQueue, needs: named},
		{
			sentence: "a grant to a named owner lets in its other waiters", run: grantAdmitsTheOwnersWaiters,
			needs: needing(driver.NamedOwners, driver.Order),
		},
		{
			sentence: "a second hold does not lengthen the lease of the first", run: holdsHaveLeasesOfTheirOwn,
			needs: named, ends: on(driver.Leases),
		},
		{
			sentence: "where owners cannot be named, a named request is refused", run: namedRequestIsRefused,
			lacks: driver.NamedOwners,
		},
	}
}

// The owner string is the holder's own. If that were enough, a delayed request of an earlier owner would get in beside
// the present one (docs/rationale.md, Owners).
func anonymousOwnerNeverReenters(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	for _, c := range []*client{a, b} {
		r := c.ask(tr.mutex())
		r.Owner = h.r.Owner
		c.isRefused(r, "with the owner string of the holder, but not named")
	}
	h.release()
}

// Re-entry is one acquisition to a fence, so token and nonce are those that the lock has.
func namedOwnerReenters(tr *trial) {
	a, b := tr.client(), tr.client()
	first := a.take(a.asOwner("order-7", tr.mutex()))
	second := b.take(b.asOwner("order-7", tr.mutex()))
	if first.g.Token != second.g.Token || first.g.Nonce != second.g.Nonce {
		tr.Errorf("re-entry has token %d and nonce %q, want those of the lock: %d and %q",
			second.g.Token, second.g.Nonce, first.g.Token, first.g.Nonce)
	}
	b.isRefused(b.asOwner("order-8", tr.mutex()), "by another named owner")
	first.release()
	second.release()
}

// Named and anonymous owners are two name spaces.
func namedAndUnnamedAreStrangers(tr *trial) {
	a, b := tr.client(), tr.client()
	unnamed := func(c *client) *driver.Request {
		r := c.ask(tr.mutex())
		r.Owner = "same"
		return r
	}
	h := a.take(a.asOwner("same", tr.mutex()))
	b.isRefused(unnamed(b), "by an unnamed owner, with a named one inside")
	h.release()
	h = a.take(unnamed(a))
	b.isRefused(b.asOwner("same", tr.mutex()), "by a named owner, with an unnamed one inside")
	h.release()
}

// The holds end in several orders, and the lock is free after the last of them only.
func lastHoldFrees(tr *trial) {
	a, b := tr.client(), tr.client()
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		holds := []*hold{
			a.take(a.asOwner("order-7", tr.mutex())),
			b.take(b.asOwner("order-7", tr.mutex())),
			a.take(a.asOwner("order-7", tr.mutex())),
		}
		holds[order[0]].release()
		b.findsHeld(tr.mutex(), "with two of three holds left")
		holds[order[1]].release()
		b.findsHeld(tr.mutex(), "with one of three holds left")
		holds[order[2]].release()
		b.findsFree(tr.mutex(), "with no hold left")
	}
}

// A waiter that stands in front must not be in the way: it waits for the owner that re-enters.
func reentryBypassesTheQueue(tr *trial) {
	a, b := tr.client(), tr.client()
	first := a.take(a.asOwner("order-7", tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	second, err := a.tryFor(a.asOwner("order-7", tr.mutex()))
	tr.must(err, "a try to re-enter with somebody waiting")
	first.release()
	w.stillWaits("with one of two holds left")
	second.release()
	w.granted("after the last release").release()
}

// Otherwise the owner's second request would wait for its own first one.
func grantAdmitsTheOwnersWaiters(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	one := b.queue(b.asOwner("order-7", tr.mutex()))
	stranger := b.queue(b.ask(tr.mutex()))
	two := a.queue(a.asOwner("order-7", tr.mutex()))
	h.release()
	first := one.granted("after the release")
	second := two.granted("after a grant to the same named owner")
	first.release()
	stranger.stillWaits("with one of two holds left")
	second.release()
	stranger.granted("after the last release").release()
}

// A second hold must not lengthen the first: each crashed holder would keep the lock for its neighbour's lease.
func holdsHaveLeasesOfTheirOwn(tr *trial) {
	a, b := tr.client(), tr.client()
	brief := a.asOwner("order-7", tr.mutex())
	brief.Lease = tr.h.Lease
	first := a.take(brief)
	second, err := b.acquire(b.asOwner("order-7", tr.mutex()))
	tr.must(err, "re-entry")
	tr.pass(tr.h.Lease + 2*settle)
	tr.mustMatch(a.end(tr.mutex(), first.r.ID), driver.ErrLost, "release of the hold whose lease is over")
	b.findsHeld(tr.mutex(), "with the lease of the other hold running")
	second.release()
	b.findsFree(tr.mutex(), "after the last release")
}

// Taking it as anonymous would make an owner wait for itself, in silence.
func namedRequestIsRefused(tr *trial) {
	a := tr.client()
	_, err := a.acquire(a.asOwner("order-7", tr.mutex()))
	tr.mustMatch(err, driver.ErrUnsupported, "an acquire by a named owner")
	a.findsFree(tr.mutex(), "after the refusal")
}
