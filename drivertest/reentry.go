package drivertest

import "github.com/interlock-go/interlock/driver"

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

func namedRequestIsRefused(tr *trial) {
	a := tr.client()
	_, err := a.acquire(a.asOwner("order-7", tr.mutex()))
	tr.mustMatch(err, driver.ErrUnsupported, "an acquire by a named owner")
	a.findsFree(tr.mutex(), "after the refusal")
}
