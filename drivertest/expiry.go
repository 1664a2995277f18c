package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of expiry: a hold that is not renewed ends, not early, and for good. It is the one file that judges real
// time, and only on the safe side.

func expiry() []behaviour {
	leased := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, ends: on(driver.Leases), needs: needing(driver.Expiry)}
	}
	return []behaviour{
		leased("a hold that is not renewed ends, and another client gets in", unrenewedHoldEnds),
		leased("an ended hold says lost and leaves its successor alone", endedHoldLeavesSuccessorAlone),
		leased("an ended hold does not come back although nobody else wants the lock", endedHoldDoesNotComeBack),
		leased("nobody gets in while an earlier hold is still trusted", nobodyGetsInEarly),
		leased("nobody who waits gets in while an earlier hold is still trusted", nobodyWhoWaitsGetsInEarly),
		{sentence: "a release that keeps lets the lease run out", run: releaseThatKeeps, ends: on(driver.Leases)},
		{
			sentence: "a client that stands still loses its holds", run: pausedClientLosesItsHolds,
			ends: on(driver.Sessions, driver.Process), needs: needing(driver.Expiry),
		},
	}
}

// The grant itself is checked too: Sent must be before the answer was received, or the trust window would be too long.
func unrenewedHoldEnds(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	if h.g.Lease <= 0 || h.g.Sent.IsZero() || h.g.Sent.After(h.back) {
		tr.Fatalf("the grant is trusted from %v for %v, want an instant before it was received and a lease",
			h.g.Sent, h.g.Lease)
	}
	next := b.getsIn(tr.mutex(), tr.afterlife(), "after the lease")
	next.notBefore(h.trustedUntil(), "the successor")
	next.release()
}

// What the ended hold still sends, a renewal and a release, must not touch whoever came after it.
func endedHoldLeavesSuccessorAlone(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	next := b.getsIn(tr.mutex(), tr.afterlife(), "after the lease")
	h.isGone("with a successor inside")
	c.findsHeld(tr.mutex(), "after the ended hold was renewed and released")
	next.release()
}

// Nobody else takes the lock, so only the engine's own clock can end the hold. A late renewal must not revive it.
func endedHoldDoesNotComeBack(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	// The engine granted before Acquire returned, so that its lease is over by now, with some room for rounded clocks.
	tr.pass(tr.h.Lease + 2*settle)
	h.isGone("with nobody else inside")
	b.findsFree(tr.mutex(), "after the ended hold was renewed and released")
}

// Several holds follow each other, each by a try as soon as the one before may be over.
func nobodyGetsInEarly(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	for range 3 {
		a, b = b, a
		var next *hold
		tr.untilWithin(tr.afterlife(), "a try after the lease", func() (err error) {
			next, err = a.tryFor(a.briefly(tr.mutex()))
			return err
		})
		next.notBefore(h.trustedUntil(), "a try")
		h = next
	}
	h.abandon()
}

// The same for a waiter, which an engine may let in on another path.
func nobodyWhoWaitsGetsInEarly(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	w := b.start(b.ask(tr.mutex()))
	// Whether a waiter is woken by the end of a lease is another promise. Here, tries wake the engine.
	tr.untilWithin(tr.afterlife(), "a waiter after the lease", func() error {
		if trier, err := c.try(tr.mutex()); err == nil {
			trier.notBefore(h.trustedUntil(), "a try")
			trier.release()
		}
		return w.missing()
	})
	next := w.granted("after the lease")
	next.notBefore(h.trustedUntil(), "a waiter")
	next.release()
}

// MinHold and LockDelay rest on this: the hold is over for its owner at once, and the lock stays closed for Keep.
func releaseThatKeeps(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	ctx, cancel := tr.bound()
	defer cancel()
	kept := time.Now().Add(tr.h.Lease)
	tr.must(a.d.Release(ctx, &driver.Release{Key: tr.mutex(), ID: h.r.ID, Keep: tr.h.Lease}), "release that keeps")
	tr.mustMatch(a.renew(tr.mutex(), h.r.ID, longLease), driver.ErrLost, "renewal of a hold that was released but kept")
	next := b.getsIn(tr.mutex(), tr.afterlife(), "after the time for which it was kept")
	next.notBefore(kept, "the successor of a kept hold")
	next.release()
}

// Engines with sessions: the client stands still and cannot renew, so the engine must end its session by itself.
func pausedClientLosesItsHolds(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	if tr.h.Pause == nil {
		tr.Fatalf("the Harness has no Pause, and the engine does not declare that it lacks %q", driver.Expiry)
	}
	resume := tr.h.Pause(tr.t, a.d)
	trusted := time.Now()
	if h.g.Session != nil {
		trusted = h.g.Session.Confirmed().Add(tr.traits.Timeout)
	}
	next := b.getsIn(tr.mutex(), tr.afterlife(), "while the holder stands still")
	next.notBefore(trusted, "the successor")
	resume()
	h.isGone("after it stood still")
	a.findsHeld(tr.mutex(), "after the ended hold was released")
	next.release()
}

// The promise of a lock delay: after a loss nobody gets the lock for a while, and after a release everybody can.

func delaying() []behaviour {
	delayed := func(sentence string, run func(*trial), more ...driver.Ability) behaviour {
		return behaviour{
			sentence: sentence, run: run, ends: on(driver.Leases), needs: append(needing(driver.LockDelays), more...),
		}
	}
	return []behaviour{
		delayed("after the end of a lease nobody gets in before the delay is over", expiryDelays),
		delayed("after the end of a lease nobody who waits gets in before the delay is over", expiryDelaysWaiters),
		delayed("after a wait a hold has the delay too", delayAfterAWait),
		delayed("after a release there is no delay", releaseDoesNotDelay),
		delayed("a break delays, and a second one ends the delay", breakDelays, driver.Breaking),
		delayed("within the delay a lost hold is listed as in its cooldown",
			delayedHoldIsListedInCooldown, driver.Holders),
		delayed("within the delay a named owner does not re-enter", delayedOwnerDoesNotReenter, driver.NamedOwners),
	}
}

// delayed is briefly with a delay of the same length.
func (c *client) delayed(key driver.Key) *driver.Request {
	r := c.briefly(key)
	r.LockDelay = c.tr.h.Lease
	return r
}

// reopens returns the instant before which nobody may get in after h was left to run out.
func (h *hold) reopens() time.Time { return h.trustedUntil().Add(h.r.LockDelay) }

// Within the delay the hold is over for its owner although nobody else is in.
func expiryDelays(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.delayed(tr.mutex()))
	tr.pass(time.Until(h.over()) + 2*settle)
	h.isGone("within the delay")
	next := b.getsIn(tr.mutex(), tr.afterlife(), "after the delay")
	next.notBefore(h.reopens(), "the successor")
	h.isGone("with a successor inside")
	b.findsHeld(tr.mutex(), "after the ended hold was released")
	next.release()
}

// A waiter may be let in on another path than a try.
func expiryDelaysWaiters(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.delayed(tr.mutex()))
	next := b.take(b.ask(tr.mutex()))
	next.notBefore(h.reopens(), "a waiter")
	next.release()
}

// delayAfterAWait is about engines that grant provisionally to the waiters: that hold must have the delay as well.
func delayAfterAWait(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.delayed(tr.mutex()))
	h.release()
	second := w.granted("after the release")
	next := c.getsIn(tr.mutex(), tr.afterlife(), "after the delay")
	next.notBefore(second.reopens(), "the successor")
	next.release()
}

// A release says that nothing is under way any more, so there is nothing to wait for.
func releaseDoesNotDelay(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.ask(tr.mutex())
	r.LockDelay = longLease
	h := a.take(r)
	w := b.queue(b.ask(tr.mutex()))
	h.release()
	w.granted("after the release").release()
	b.findsFree(tr.mutex(), "after the releases")
}

// A break is a loss and begins the delay; a second break with the same token ends it, for operators who know better.
func breakDelays(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.ask(tr.mutex())
	r.LockDelay = longLease
	h := a.take(r)
	tr.must(b.breaks(tr.mutex(), h.g.Token), "break")
	b.findsHeld(tr.mutex(), "within the delay after a break")
	h.isGone("within the delay after a break")
	tr.must(b.breaks(tr.mutex(), h.g.Token), "a second break")
	b.findsFree(tr.mutex(), "after a second break")
}

// Re-entry within the delay would let the loser go on beside what it has lost.
func delayedOwnerDoesNotReenter(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.asOwner("order-7", tr.mutex())
	r.Lease, r.LockDelay = tr.h.Lease, longLease
	h := a.take(r)
	tr.pass(time.Until(h.over()) + 2*settle)
	b.isRefused(b.asOwner("order-7", tr.mutex()), "within the delay, to the owner who lost it")
	a.undo(h.r)
	b.findsFree(tr.mutex(), "after the hold was undone")
}

// Operators must not see a holder that has lost the lock.
func delayedHoldIsListedInCooldown(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.briefly(tr.mutex())
	r.LockDelay = longLease
	h := a.take(r)
	tr.pass(time.Until(h.over()) + 2*settle)
	b.rests(true, "after its lease has ended")
	a.undo(h.r)
	b.findsFree(tr.mutex(), "after the hold was undone")
}

// The promise about crashes: a dead client keeps nobody out for ever, neither as a holder nor as a waiter.

func crash() []behaviour {
	return []behaviour{
		{sentence: "who waits for a crashed holder is let in", run: waiterOutlivesTheHolder},
		{sentence: "all locks of a crashed client become free", run: allLocksOfTheDeadBecomeFree},
		{sentence: "a crashed waiter does not keep out those behind it", run: deadWaiterBlocksNobody},
		{sentence: "a crash of one client leaves the holds of others alone", run: crashLeavesOthersAlone},
	}
}

// mortal takes a lock as a client that is going to die: with the short lease.
func (c *client) mortal(suffix string) {
	c.tr.Helper()
	c.take(c.briefly(c.tr.another(suffix)))
}

// The holder releases nothing, so the end of its lease or session must wake the waiters. An engine that only lets in on
// a release would leave them asleep.
func waiterOutlivesTheHolder(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	a.mortal("")
	one, two := b.queue(b.ask(tr.mutex())), c.queue(c.ask(tr.mutex()))
	tr.crash(a)
	tr.serveAllWithin(tr.afterlife(), "after the holder crashed", one, two)
}

// Several locks of one client, of which each must become free by itself.
func allLocksOfTheDeadBecomeFree(tr *trial) {
	a, b := tr.client(), tr.client()
	suffixes := []string{"-1", "-2", "-3"}
	for _, s := range suffixes {
		a.mortal(s)
	}
	tr.crash(a)
	for _, s := range suffixes {
		b.start(b.ask(tr.another(s))).grantedWithin(tr.afterlife(), "after its holder crashed").release()
	}
}

// The dead one stands in the queue. It may be granted the lock, and must lose it again in time for whoever stands
// behind.
func deadWaiterBlocksNobody(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	dead := b.queue(b.briefly(tr.mutex()))
	behind := c.queue(c.ask(tr.mutex()))
	tr.crash(b, dead)
	h.release()
	behind.grantedWithin(tr.afterlife(), "behind a waiter that crashed").release()
}

// The clean-up after one client must not take locks of another.
func crashLeavesOthersAlone(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	a.mortal("-1")
	stays := b.take(b.ask(tr.another("-2")))
	tr.crash(a)
	c.start(c.ask(tr.another("-1"))).grantedWithin(tr.afterlife(), "after its holder crashed").release()
	c.findsHeld(stays.r.Key, "after another client crashed")
	stays.release()
}
