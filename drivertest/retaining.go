package drivertest

import (
	"errors"
	"fmt"
	"sync/atomic"
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

// The promise of recalls, continued: listings of retained locks.

// An ordinary renewal that is late, of no later pass, must not bring the owner back into the list. One of a later pass
// must, because then somebody holds the lock again.
func retainedIsListed(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.passing()
	r.Label = "nightly"
	h := a.take(r)
	if !h.passes(1) {
		return
	}
	b.seesRetained(false, h, "while it is held")
	h.retain(0, longLease)
	b.seesRetained(true, h, "while it is retained")
	tr.must(h.renew(0, longLease), "a late renewal")
	b.seesRetained(true, h, "after a late renewal")
	if held := b.refusedBy(tr.mutex(), "while it is retained"); held.Client != r.Client || held.Owner != "" ||
		!held.Retains {
		tr.Errorf("the refusal is %+v, want the client %q, no owner, and Retains", *held, r.Client)
	}
	tr.must(h.renew(1, longLease), "renewal of a later pass")
	b.seesRetained(false, h, "while it is held again")
	h.release()
}

// seesRetained fails unless the listing, and a look, show h as retained by its client, or as held by its owner.
func (c *client) seesRetained(want bool, h *hold, when string) {
	c.tr.Helper()
	owner := h.r.Owner
	if want {
		owner = ""
	}
	listed := c.showsHolders(h.r.Key, 1)
	for _, got := range append(listed, c.sees(h.r.Key, when).Holders...) {
		if got.Retained != want || got.Owner != owner || got.Client != h.r.Client || got.Cooldown {
			c.tr.Fatalf("%s the holder is listed as %+v, want Retained %v, owner %q, client %q",
				when, got, want, owner, h.r.Client)
		}
	}
}

// The promise of recalls: a holder is told that another wants its lock, and one that keeps a lock without an owner
// gives way. retaining.go has the part about renewals.

func recalling() []behaviour {
	told := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, needs: needing(driver.Recalls)}
	}
	leader := told("a leader that retains is told when another campaigns", func(tr *trial) {
		tr.isToldOfAWait(driver.KindElection)
	})
	leader.kinds = []driver.Kind{driver.KindElection}
	writer := told("a writer that retains is told when a reader waits", writerIsTold)
	writer.kinds = []driver.Kind{driver.KindRWMutex}
	several := told("a holder that retains is told when several locks are asked for at once", toldOfSeveral)
	several.wants = bundles
	again := told("a hold that a requeue was granted is told as well", toldAfterARequeue)
	again.wants = requeues
	return append([]behaviour{
		told("a holder that retains is told when another waits, who is told that it does", toldOfAWait),
		told("a holder that retains is told when a try is refused, which says that it does", toldOfATry),
		told("a hold with which nothing is retained is refused as such", refusalByAPlainHold),
		told("a hold that came after a wait is told as well", toldAfterAWait),
		told("who has released is not told that the lock of the next holder is wanted", notToldAfterTheRelease),
		leader, writer, several, again,
	}, retaining()...)
}

// listener counts how often a holder was told that another wants its lock.
type listener struct {
	tr   *trial
	told atomic.Int64
}

// listening is ask by a client that wants to know whether another wants the lock.
func (c *client) listening(key driver.Key) (*driver.Request, *listener) {
	l := &listener{tr: c.tr}
	r := c.ask(key)
	r.Wanted = func() { l.told.Add(1) }
	return r, l
}

// retaining is listening by a client that may keep the lock when its owner has ended the hold.
func (c *client) retaining(key driver.Key) (*driver.Request, *listener) {
	r, l := c.listening(key)
	r.Retains = true
	return r, l
}

// isTold fails unless the holder is told more often than before.
func (l *listener) isTold(before int64, when string) {
	l.tr.Helper()
	l.tr.until(when+": the holder is told that another wants the lock", func() error {
		if n := l.told.Load(); n <= before {
			return fmt.Errorf("it was called %d times, and %d times before", n, before)
		}
		return nil
	})
}

// isToldNothing fails if the holder was told, or is told within settle.
func (l *listener) isToldNothing(when string) {
	l.tr.Helper()
	l.tr.pass(settle)
	if n := l.told.Load(); n > 0 {
		l.tr.Fatalf("%s: Wanted was called %d times", when, n)
	}
}

// refusedBy returns the error with which a try of key is refused.
func (c *client) refusedBy(key driver.Key, when string) *driver.HeldError {
	c.tr.Helper()
	h, err := c.try(key)
	if err == nil {
		h.abandon()
		c.tr.Fatalf("%s: a try of %s %q was granted, and must be refused", when, key.Kind, key.Name)
	}
	var held *driver.HeldError
	if !errors.As(err, &held) {
		c.tr.Fatalf("%s: a try says %q, want a *HeldError", when, text(err))
	}
	return held
}

// The waiter is told as well that the holder may give way.
func toldOfAWait(tr *trial) { tr.isToldOfAWait(driver.KindMutex) }

// isToldOfAWait is toldOfAWait for a lock of that kind.
func (tr *trial) isToldOfAWait(kind driver.Kind) {
	tr.Helper()
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.key(kind))
	h := a.take(r)
	l.isToldNothing("while nobody asks")
	w := b.start(b.ask(tr.key(kind)))
	if held := w.isWaiting(); held == nil || !held.Retains {
		tr.Errorf("who waits was told %+v, want one that says Retains", held)
	}
	l.isTold(0, "while another waits")
	h.release()
	w.granted("after the release").release()
}

// writerIsTold is about waits for a shared mode, which engines may store elsewhere.
func writerIsTold(tr *trial) {
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.key(driver.KindRWMutex))
	h := a.take(r)
	w := b.queue(b.reader())
	l.isTold(0, "while a reader waits")
	h.release()
	w.granted("after the release").release()
}

// A try queues nothing, so the message must come with its refusal.
func toldOfATry(tr *trial) {
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.mutex())
	h := a.take(r)
	if held := b.refusedBy(tr.mutex(), "while it is held"); !held.Retains {
		tr.Errorf("the refusal is %+v, want one that says Retains", *held)
	}
	l.isTold(0, "after a try")
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// refusalByAPlainHold is about what a try goes by that waits for a lock to come back: without retention it would wait
// in vain.
func refusalByAPlainHold(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.listening(tr.mutex())
	h := a.take(r)
	if held := b.refusedBy(tr.mutex(), "while it is held"); held.Retains {
		tr.Errorf("the refusal is %+v, and nothing is retained", *held)
	}
	w := b.start(b.ask(tr.mutex()))
	if held := w.isWaiting(); held != nil && held.Retains {
		tr.Errorf("who waits was told %+v, and nothing is retained", *held)
	}
	h.release()
	w.granted("after the release").release()
}

// toldAfterAWait is about engines that grant to a waiter in another way than to a request that finds the lock free.
func toldAfterAWait(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	first := a.take(a.ask(tr.mutex()))
	r, l := b.retaining(tr.mutex())
	w := b.queue(r)
	first.release()
	second := w.granted("after the release")
	before := l.told.Load()
	next := c.queue(c.ask(tr.mutex()))
	l.isTold(before, "while a further one waits")
	second.release()
	next.granted("after the second release").release()
}

// notToldAfterTheRelease has nobody ask while the first one holds, so that no message to it can be a late one.
func notToldAfterTheRelease(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	r, first := a.retaining(tr.mutex())
	a.take(r).release()
	r, second := b.retaining(tr.mutex())
	h := b.take(r)
	w := c.queue(c.ask(tr.mutex()))
	second.isTold(0, "while another waits")
	first.isToldNothing("after its release")
	h.release()
	w.granted("after the release").release()
}

// A step that asks for several locks is refused because of one, whose holder must be told.
func toldOfSeveral(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	r, l := a.retaining(keys[len(keys)-1])
	h := a.take(r)
	_, err := b.acquireAll(b.askAll(keys))
	tr.mustMatch(err, driver.ErrHeld, "several locks of which one is held")
	l.isTold(0, "after the refusal")
	h.release()
}

// The hold that a requeue was granted has a Wanted of its own.
func toldAfterARequeue(tr *trial) {
	a, b := tr.client(), tr.client()
	first := a.take(a.ask(tr.mutex()))
	r, l := a.retaining(tr.mutex())
	second := first.mustRequeue(r, "while nobody waits")
	w := b.queue(b.ask(tr.mutex()))
	l.isTold(0, "while another waits")
	second.release()
	w.granted("after the release").release()
}
