package drivertest

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

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
