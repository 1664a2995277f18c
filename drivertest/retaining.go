package drivertest

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The part of recalls that is about renewals. Their answers repeat what a message may not have told, and a renewal says
// that nobody holds the lock any more (docs/rationale.md, Retention).

// retaining is the part of recalling that is about renewals. Some of their answers tell what a message may not have
// told; others say that nobody holds the lock any more.
func retaining() []behaviour {
	renewed := func(sentence string, run func(*trial), more ...driver.Ability) behaviour {
		return behaviour{
			sentence: sentence, run: run, ends: on(driver.Leases), needs: append(needing(driver.Recalls), more...),
		}
	}
	shown := func(sentence string, run func(*trial), more ...driver.Ability) behaviour {
		b := renewed(sentence, run, more...)
		b.ends = on(driver.Leases, driver.Sessions)
		return b
	}
	several := renewed("the answer to a renewal tells who took several locks at once that another waits for one",
		answerTellsOfOneOfSeveral)
	several.wants = bundles
	return []behaviour{
		shown("the answer to a renewal tells a holder that another waits, and nothing while nobody has asked",
			answerTells),
		shown("the answer to a renewal tells it again to a holder that retains, and to one that nobody is any more",
			answerTellsAgain),
		shown("the answer to a renewal tells who was let in before others that they wait", answerTellsOfThoseBehind,
			driver.Order),
		several,
		renewed("what is retained is free after its short lease, and not before", retainedIsFreeSoon),
		renewed("who waits gets in after the short lease of what is retained, and not before", retainedLetsInWhoWaits),
		renewed("a renewal of a later pass ends the retention", laterPassEndsTheRetention),
		renewed("a late renewal of what was retained before does not shorten the lease of who holds it now",
			lateRetentionDoesNotShorten),
		renewed("late renewals do not lengthen the lease of what is retained", lateRenewalsDoNotLengthen),
		renewed("a late copy of the acquire does not lengthen the lease of what is retained", lateCopyDoesNotLengthen),
		shown("what is retained is listed as such, with its client and no owner", retainedIsListed, driver.Holders),
	}
}

// passing is retaining by a client inside which the lock passes on. It needs tokens for that.
func (c *client) passing() (*driver.Request, *listener) {
	r, e := c.retaining(c.tr.mutex())
	r.Tokens = 4
	return r, e
}

// passes reports whether h has the tokens to pass on n times. An engine may grant fewer than it is asked for.
func (h *hold) passes(n int) bool {
	if h.g.Tokens > n {
		return true
	}
	h.c.tr.Logf("a hold with %d tokens cannot pass on %d times", h.g.Tokens, n)
	h.release()
	return false
}

// renew asks for more time for a hold that has passed on that often.
func (h *hold) renew(pass int, lease time.Duration) error {
	h.c.tr.Helper()
	return h.c.renewAs(driver.Renewal{
		Key: h.r.Key, ID: h.r.ID, Lease: lease, Owner: h.r.Owner, Label: h.r.Label, Pass: pass,
	})
}

// retain says that nobody holds the lock any more after so many passes, and how long it is to last.
func (h *hold) retain(pass int, lease time.Duration) (sent time.Time) {
	h.c.tr.Helper()
	sent = time.Now()
	err := h.c.renewAs(driver.Renewal{Key: h.r.Key, ID: h.r.ID, Lease: lease, Pass: pass, Retained: true})
	h.c.tr.must(err, "renewal of what is retained")
	return sent
}

// A renewal's answer tells of a wait only while there is one, and repeats what the message to the holder told.
func answerTells(tr *trial) {
	a, b := tr.client(), tr.client()
	r, l := a.listening(tr.mutex())
	h := a.take(r)
	tr.must(h.renew(0, longLease), "renewal while nobody has asked")
	l.isToldNothing("after a renewal while nobody has asked")
	w := b.queue(b.ask(tr.mutex()))
	before := l.told.Load()
	tr.must(h.renew(0, longLease), "renewal while another waits")
	l.isTold(before, "after a renewal while another waits")
	h.release()
	w.granted("after the release").release()
}

// answerTellsAgain is what is left to a holder for which the message about the wait was lost.
func answerTellsAgain(tr *trial) {
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.mutex())
	h := a.take(r)
	w := b.queue(b.ask(tr.mutex()))
	l.isTold(0, "while another waits")
	tr.pass(settle) // what is told twice has been told by now
	before := l.told.Load()
	tr.must(h.renew(0, longLease), "renewal while another waits")
	l.isTold(before, "after a renewal while another waits")
	before = l.told.Load()
	h.retain(0, longLease)
	l.isTold(before, "after a renewal of what is retained, while another waits")
	h.release()
	w.granted("after the release").release()
}

// answerTellsOfThoseBehind is about waits that began when this holder did not hold yet.
func answerTellsOfThoseBehind(tr *trial) {
	a, b := tr.client(), tr.client()
	first := a.take(a.ask(tr.mutex()))
	r, l := b.retaining(tr.mutex())
	w := b.queue(r)
	behind := a.queue(a.ask(tr.mutex()))
	first.release()
	second := w.granted("after the release")
	before := l.told.Load()
	tr.must(second.renew(0, longLease), "renewal while another waits")
	l.isTold(before, "after a renewal while another waits")
	second.release()
	behind.granted("after the second release").release()
}

// Holds taken in one step are told each for itself.
func answerTellsOfOneOfSeveral(tr *trial) {
	a, b := tr.client(), tr.client()
	var rs []*driver.Request
	var all []*listener
	for _, key := range tr.several() {
		r, l := a.listening(key)
		rs, all = append(rs, r), append(all, l)
	}
	holds := a.takeAll(rs, "while they are free")
	const one = 1
	w := b.queue(b.ask(rs[one].Key))
	before := all[one].told.Load()
	for _, h := range holds {
		tr.must(h.renew(0, longLease), "renewal while another waits for one")
	}
	all[one].isTold(before, "after a renewal while another waits")
	for i, l := range all {
		if i != one {
			l.isToldNothing("while another waits for another lock")
		}
	}
	releaseAll(holds)
	w.granted("after the release").release()
}

// A client that dies while it retains must not keep others out for the whole lease.
func retainedIsFreeSoon(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.retaining(tr.mutex())
	h := a.take(r)
	sent := h.retain(0, tr.h.Lease)
	next := b.getsIn(tr.mutex(), tr.afterlife(), "after the short lease")
	next.notBefore(sent.Add(tr.h.Lease), "the successor")
	h.isGone("with a successor inside")
	next.release()
}

// retainedLetsInWhoWaits has the lease shortened while another waits, so an alarm that was set for its former end comes
// too late. The engine hears of the pass by nothing but this renewal.
func retainedLetsInWhoWaits(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.passing()
	h := a.take(r)
	if !h.passes(1) {
		return
	}
	w := b.queue(b.ask(tr.mutex()))
	sent := h.retain(1, tr.h.Lease)
	next := w.grantedWithin(tr.afterlife(), "after the short lease")
	next.notBefore(sent.Add(tr.h.Lease), "who waits")
	next.release()
}

// The lock was taken over, so the short lease must not end it.
func laterPassEndsTheRetention(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.passing()
	h := a.take(r)
	if !h.passes(1) {
		return
	}
	sent := h.retain(0, tr.h.Lease)
	switch err := h.renew(1, longLease); {
	case err != nil && time.Now().Before(sent.Add(tr.h.Lease)):
		tr.Fatalf("renewal of a later pass: %v", err)
	case err != nil:
		tr.Logf("this machine stood still: %v", err)
		return
	}
	tr.pass(2 * tr.h.Lease)
	b.findsHeld(tr.mutex(), "within the lease of the later pass")
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// lateRetentionDoesNotShorten also has an ordinary renewal come late. An engine that forgets a later pass for an
// earlier one would take the next retention for news.
func lateRetentionDoesNotShorten(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.passing()
	h := a.take(r)
	if !h.passes(2) {
		return
	}
	tr.must(h.renew(2, longLease), "renewal after two passes")
	h.retain(1, tr.h.Lease)
	tr.must(h.renew(0, longLease), "a late renewal")
	h.retain(1, tr.h.Lease)
	tr.pass(2 * tr.h.Lease)
	b.findsHeld(tr.mutex(), "within the lease of the later owner")
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// Renewals of the time before the retention arrive late, of the same pass and of an earlier one.
func lateRenewalsDoNotLengthen(tr *trial) {
	tr.endsSoonAlthough(func(h *hold) error {
		return h.renew(1, longLease)
	}, func(h *hold) error { return h.renew(0, longLease) })
}

// A late copy of the acquire asks for the whole lease.
func lateCopyDoesNotLengthen(tr *trial) {
	tr.endsSoonAlthough(func(h *hold) error {
		_, err := h.c.acquire(copyOf(h.r))
		return err
	})
}

// endsSoonAlthough fails unless what is retained after a pass ends with its short lease, whatever comes late. What
// comes late is answered as usual.
func (tr *trial) endsSoonAlthough(late ...func(h *hold) error) {
	tr.Helper()
	a, b := tr.client(), tr.client()
	r, _ := a.passing()
	h := a.take(r)
	if !h.passes(1) {
		return
	}
	sent := h.retain(1, tr.h.Lease)
	for i, ask := range late {
		err := ask(h)
		trusted := time.Now().Before(sent.Add(tr.h.Lease))
		if err != nil && (trusted || !errors.Is(err, driver.ErrLost)) {
			tr.Fatalf("what comes late (%d) must be answered as ever, but says: %v", i+1, err)
		}
	}
	next := b.getsIn(tr.mutex(), tr.afterlife(), "after the short lease")
	next.notBefore(sent.Add(tr.h.Lease), "the successor")
	next.release()
}
