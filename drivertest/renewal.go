package drivertest

import (
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of renewal: a hold lasts for as long as its client keeps it.

func renewal() []behaviour {
	leases := on(driver.Leases)
	return []behaviour{
		{sentence: "a renewed hold outlives its lease", run: renewedHoldOutlivesItsLease, ends: leases},
		{sentence: "a renewal counts from now and lasts for its own lease", run: renewalLastsForItsLease, ends: leases},
		{sentence: "a renewal never shortens a lease", run: renewalNeverShortens, ends: leases},
		{sentence: "a batch answers once for each hold, before it returns", run: batchAnswersForEachHold, ends: leases},
		{
			sentence: "a hold of a living client stays without being renewed", run: livingClientKeepsItsHold,
			ends: on(driver.Sessions, driver.Process),
		},
	}
}

// renewedHoldOutlivesItsLease renews for three leases. If the machine stands still for a whole lease in between, the
// hold may end rightly, and the behaviour begins again.
func renewedHoldOutlivesItsLease(tr *trial) {
	for range 5 {
		if outlivesItsLease(tr) {
			return
		}
	}
	tr.Fatalf("this machine stands still for longer than %v again and again: choose a longer Harness.Lease", tr.h.Lease)
}

// outlivesItsLease is one attempt. It returns false if the machine stood still, so that the hold ended rightly.
func outlivesItsLease(tr *trial) (seen bool) {
	a, b := tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	trusted := h.trustedUntil()
	for end := time.Now().Add(3 * tr.h.Lease); time.Now().Before(end); {
		tr.pass(tr.h.Lease / 5)
		// Somebody else may get in only if the machine stood still for a whole lease, so not before the trust ended.
		if other, err := b.try(tr.mutex()); err == nil {
			other.notBefore(trusted, "beside a renewed hold")
			other.release()
			return false
		}
		sent := time.Now()
		err := a.renew(tr.mutex(), h.r.ID, tr.h.Lease)
		switch {
		case err != nil && time.Now().Before(trusted):
			tr.Fatalf("renewal of a hold that is still trusted: %v", err)
		case err != nil:
			_ = a.end(tr.mutex(), h.r.ID)
			return false
		}
		// From before the renewal was sent, as the portable layer counts.
		trusted = sent.Add(tr.h.Lease)
	}
	h.abandon() // it may be over by now, if the machine stands still
	return true
}

// The renewal asks for a longer lease than the acquisition: an engine that keeps the first one ends the hold too early.
func renewalLastsForItsLease(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.briefly(tr.mutex()))
	if err := a.renew(tr.mutex(), h.r.ID, longLease); err != nil && time.Now().Before(h.trustedUntil()) {
		tr.Fatalf("renewal of a hold that is still trusted: %v", err)
	} else if err != nil {
		tr.Logf("this machine stood still: %v", err)
		return
	}
	tr.pass(2 * tr.h.Lease)
	b.findsHeld(tr.mutex(), "after its first lease, with a longer renewal running")
	h.release()
}

// An answer may be overtaken by a later one, so a shorter lease must not end a longer one.
func renewalNeverShortens(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	tr.must(a.renew(tr.mutex(), h.r.ID, tr.h.Lease), "renewal by less than what is left")
	tr.pass(2 * tr.h.Lease)
	b.findsHeld(tr.mutex(), "within its first lease, after a shorter renewal")
	h.release()
}

// A batch with living, ended and unknown holds: each must be answered once, and by its own outcome. An empty batch
// answers nothing.
func batchAnswersForEachHold(tr *trial) {
	a := tr.client()
	one, two := a.take(a.ask(tr.another("-1"))), a.take(a.ask(tr.another("-2")))
	over := a.take(a.ask(tr.another("-3")))
	over.release()
	batch := []driver.Renewal{
		{Key: one.r.Key, ID: one.r.ID, Lease: longLease},
		{Key: over.r.Key, ID: over.r.ID, Lease: longLease},
		{Key: two.r.Key, ID: freshName(), Lease: longLease},
		{Key: two.r.Key, ID: two.r.ID, Lease: longLease},
	}
	lost := []bool{false, true, true, false}

	ctx, cancel := tr.bound()
	defer cancel()
	var mu sync.Mutex
	answers := make(map[int][]error)
	renewer := a.renewer()
	renewer.Renew(ctx, nil, func(int, error) { tr.Errorf("an empty batch was answered") })
	renewer.Renew(ctx, batch, func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		answers[i] = append(answers[i], err)
	})
	mu.Lock()
	defer mu.Unlock()
	for i, want := range lost {
		if len(answers[i]) != 1 {
			tr.Fatalf("entry %d of the batch was answered %d times when Renew returned, want once", i, len(answers[i]))
		}
		if err := answers[i][0]; want != errors.Is(err, driver.ErrLost) || !want && err != nil {
			tr.Errorf("entry %d of the batch: %s, want lost: %v", i, text(err), want)
		}
	}
	one.release()
	two.release()
}

// Engines without leases: nothing is renewed, and the hold stays for as long as the client lives. Its session must be
// confirmed meanwhile, or the portable layer would take the hold for lost.
func livingClientKeepsItsHold(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	before := time.Now()
	tr.pass(max(tr.h.Lease, 2*tr.traits.Timeout))
	b.findsHeld(tr.mutex(), "while its client lives")
	if h.g.Session != nil && !h.g.Session.Confirmed().After(before) {
		tr.Errorf("the session was last confirmed before two timeouts, so its holds are not trusted")
	}
	if tr.traits.Lifetime == driver.Sessions && h.g.Session == nil {
		tr.Errorf("a grant of a Sessions engine has no Session")
	}
	h.release()
}
