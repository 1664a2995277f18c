package drivertest

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The promise of idempotence: a repeated request takes and frees once. Package faulty loses replies, loses requests and
// sends copies late.

func idempotence() []behaviour {
	return []behaviour{
		{sentence: "an acquire asked twice is granted once", run: acquireAskedTwice},
		{sentence: "an acquire asked again after a lost reply is the same grant", run: acquireAfterLostReply},
		{sentence: "an acquire asked again after a lost request is granted", run: acquireAfterLostRequest},
		{sentence: "a wait asked again stands in the queue once", run: waitAskedAgain},
		{sentence: "a release asked again after a lost reply frees nothing else", run: releaseAfterLostReply},
		{sentence: "a second release says lost", run: secondReleaseSaysLost},
		{sentence: "a copy of an acquire that arrives after the release takes nothing", run: lateCopyOfAcquire},
		{sentence: "a copy of a release that arrives late frees nothing", run: lateCopyOfRelease},
		{
			sentence: "an acquire after a requeue whose reply was lost is the same grant", run: requeueAfterLostReply,
			wants: requeues,
		},
		{sentence: "a copy of a requeue that arrives late takes nothing", run: lateCopyOfRequeue, wants: requeues},
		{
			sentence: "permits asked for twice are taken once", run: permitsAskedTwice,
			kinds: []driver.Kind{driver.KindSemaphore},
		},
	}
}

// behind returns another client, whose requests and replies suffer what the rules say.
func (tr *trial) behind(rules ...faulty.Rule) *client {
	tr.Helper()
	tr.made++
	d := tr.openThrough(func(inner driver.Driver) driver.Driver {
		bad, _ := faulty.Wrap(inner, 1, rules...)
		return bad
	})
	return tr.over(d, "client behind a bad network")
}

// isSame fails unless both grants are one.
func (h *hold) isSame(other *hold) {
	h.c.tr.Helper()
	if h.g.Token != other.g.Token || h.g.Nonce != other.g.Nonce {
		h.c.tr.Fatalf("asked again, the grant is token %d and nonce %q, want %d and %q",
			other.g.Token, other.g.Nonce, h.g.Token, h.g.Nonce)
	}
}

// copyOf returns r once more, as a retry sends it: the same ID.
func copyOf(r *driver.Request) *driver.Request {
	again := *r
	return &again
}

// A retry of a Try is granted too: the ID says that the hold is its own.
func acquireAskedTwice(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.isSame(a.take(copyOf(h.r)))
	again := copyOf(h.r)
	again.Try = true
	h.isSame(a.take(again))
	h.release()
	b.findsFree(tr.mutex(), "after one release")
}

func acquireAfterLostReply(tr *trial) { tr.acquireAfterLost(faulty.Reply, (*client).findsHeld) }

func acquireAfterLostRequest(tr *trial) { tr.acquireAfterLost(faulty.Request, (*client).findsFree) }

// acquireAfterLost loses a part of the first acquire. Whether the lock is taken depends on which part; the repetition
// must be granted either way.
func (tr *trial) acquireAfterLost(part faulty.Part, finds func(by *client, key driver.Key, when string)) {
	tr.Helper()
	a, b := tr.behind(faulty.Rule{Op: faulty.Acquire, Count: 1, Drop: part}), tr.client()
	r := a.ask(tr.mutex())
	_, err := a.acquire(r)
	tr.mustMatch(err, driver.ErrUnavailable, "an acquire that gets no answer")
	finds(b, tr.mutex(), "after an acquire that got no answer")
	a.take(copyOf(r)).release()
	b.findsFree(tr.mutex(), "after one release")
}

// A request that waits behind its own copy would never be served.
func waitAskedAgain(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	first := b.queue(b.ask(tr.mutex()))
	first.stop()
	again := b.queue(copyOf(first.r))
	behind := c.queue(c.ask(tr.mutex()))
	h.release()
	tr.serveAll("with one wait asked for twice", again, behind)
	a.findsFree(tr.mutex(), "in the end")
}

// The repetition must not end the hold that another has got meanwhile.
func releaseAfterLostReply(tr *trial) {
	a, b, c := tr.behind(faulty.Rule{Op: faulty.Release, Count: 1, Drop: faulty.Reply}), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	tr.mustMatch(a.end(tr.mutex(), h.r.ID), driver.ErrUnavailable, "a release whose reply is lost")
	next := b.take(b.ask(tr.mutex()))
	tr.mustMatch(a.end(tr.mutex(), h.r.ID), driver.ErrLost, "the release asked again")
	c.findsHeld(tr.mutex(), "after the release before was asked again")
	next.release()
}

// The caller must learn that the first one ended it.
func secondReleaseSaysLost(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.release()
	h.isGone("after its release")
	b.findsFree(tr.mutex(), "after two releases")
}

// The network delivers a copy after the release: the ID is used up by then.
func lateCopyOfAcquire(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Acquire, Copy: settle}), tr.client()
	r := a.ask(tr.mutex())
	a.take(r).release()
	tr.pass(2 * settle)
	b.findsFree(tr.mutex(), "after a late copy of the acquire")
	// A copy that the caller itself sends is refused in the same way.
	_, err := a.acquire(copyOf(r))
	tr.mustMatch(err, driver.ErrLost, "an acquire whose hold was released")
	b.findsFree(tr.mutex(), "after the acquire was asked again")
}

// The copy must end nothing, although the same client may have the lock again.
func lateCopyOfRelease(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Release, Copy: settle}), tr.client()
	a.take(a.ask(tr.mutex())).release()
	next := b.take(b.ask(tr.mutex()))
	tr.pass(2 * settle)
	b.findsHeld(tr.mutex(), "after a late copy of an earlier release")
	next.release()
}

// Both halves must have happened once: the old hold is over, and the new one is the answer to every copy.
func requeueAfterLostReply(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Requeue, Count: 1, Drop: faulty.Reply}), tr.client()
	h := a.take(a.ask(tr.mutex()))
	r := a.ask(tr.mutex())
	_, err := h.requeue(r)
	tr.mustMatch(err, driver.ErrUnavailable, "a requeue whose reply is lost")
	b.findsHeld(tr.mutex(), "after a requeue whose reply is lost")
	next := a.take(copyOf(r))
	again, err := h.requeue(copyOf(r))
	tr.must(err, "the same requeue once more")
	next.isSame(again)
	tr.mustMatch(b.end(tr.mutex(), h.r.ID), driver.ErrLost, "release of what the requeue has given back")
	b.findsHeld(tr.mutex(), "after the old hold was released")
	next.release()
	b.findsFree(tr.mutex(), "after one release")
}

// The copy comes when the second hold is over too.
func lateCopyOfRequeue(tr *trial) {
	a, b := tr.behind(faulty.Rule{Op: faulty.Requeue, Copy: settle}), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.mustRequeue(a.ask(tr.mutex()), "with nobody waiting").release()
	next := b.take(b.ask(tr.mutex()))
	tr.pass(2 * settle)
	next.release()
	b.findsFree(tr.mutex(), "after a late copy of the requeue")
}

// Copies must not add up: the second one would keep permits that nobody gives back.
func permitsAskedTwice(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.permits(3, 2))
	h.isSame(a.take(copyOf(h.r)))
	one := b.take(b.permits(3, 1))
	h.release()
	two := b.take(b.permits(3, 2))
	b.isRefused(b.permits(3, 1), "with all permits taken")
	one.release()
	two.release()
}
