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
