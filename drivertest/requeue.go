package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of requeueing: a hold is released and asked for again in one step, so that nobody loses the place behind
// the waiters.

func requeueing() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, wants: requeues}
	}
	return []behaviour{
		able("a requeue lets in who waits, and is granted after", requeueLetsInWhoWaits),
		{
			sentence: "a requeue goes behind everybody who waits", run: requeueGoesBehindEverybody,
			wants: requeues, needs: needing(driver.Order),
		},
		able("a requeue is granted at once if nobody waits", requeueWithNobodyWaiting),
		able("a requeue ends the old hold, for good", requeueEndsTheOldHold),
		able("a requeue that is not supported is refused and changes nothing", unsupportedRequeueChangesNothing),
		able("a requeue of a hold that is over takes nothing", requeueOfAnEndedHold),
		able("a requeue that is cancelled while it waits has given the lock up, and leaves nothing", cancelledRequeue),
		able("a requeue whose context has ended can be settled", requeueWithEndedContext),
		able("a requeue that is cancelled at any moment can be settled", cancelRacesWithRequeue),
	}
}

// requeue releases h and asks for r in one step, and gives up after the harness's patience.
func (h *hold) requeue(r *driver.Request) (*hold, error) {
	ctx, cancel := h.c.tr.bound()
	defer cancel()
	g, err := h.requeueIn(ctx, r)
	if err != nil {
		return nil, err
	}
	return &hold{c: h.c, r: r, g: g, back: time.Now()}, nil
}

// requeueIn is requeue with a context of its own.
func (h *hold) requeueIn(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return h.c.d.(driver.Requeuer).Requeue(ctx, h.give(), r)
}

// startRequeue is requeue in the background, as start is acquire.
func (h *hold) startRequeue(r *driver.Request) *wait {
	return h.c.startBy(h.c.tr.Context(), r, h.requeueIn)
}

// give returns the release of h.
func (h *hold) give() *driver.Release {
	return &driver.Release{Key: h.r.Key, ID: h.r.ID, Horizon: longLease}
}

// mustRequeue fails unless the requeue is granted.
func (h *hold) mustRequeue(r *driver.Request, when string) *hold {
	h.c.tr.Helper()
	next, err := h.requeue(r)
	if err != nil {
		h.c.tr.Fatalf("%s: a requeue must be granted: %v", when, err)
	}
	return next
}

// settle ends both parts of a requeue whose outcome is unknown, as the portable layer does.
func (h *hold) settle(r *driver.Request) {
	h.c.tr.Helper()
	if err := h.c.end(h.r.Key, h.r.ID); err != nil && !errors.Is(err, driver.ErrLost) {
		h.c.tr.Fatalf("release of what a requeue was to give back: %v", err)
	}
	h.c.undo(r)
}

// The release half must wake the waiter, and the acquire half must not get in before it.
func requeueLetsInWhoWaits(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	again := h.startRequeue(a.ask(tr.mutex()))
	next := w.granted("after the requeue")
	_ = again.isWaiting()
	again.stillWaits("behind who has waited")
	next.release()
	again.granted("after who has waited").release()
	b.findsFree(tr.mutex(), "in the end")
}

// requeueGoesBehindEverybody does not look at the order in which the others are served, which is another promise.
func requeueGoesBehindEverybody(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	others := []*wait{b.queue(b.ask(tr.mutex())), c.queue(c.ask(tr.mutex())), b.queue(b.ask(tr.mutex()))}
	again := h.startRequeue(a.ask(tr.mutex()))
	tr.serveAll("while the requeue waits", others...)
	again.granted("after all others").release()
	b.findsFree(tr.mutex(), "in the end")
}

// The lock must not be free in between: another client would see it.
func requeueWithNobodyWaiting(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	for range 3 {
		h = h.mustRequeue(a.ask(tr.mutex()), "with nobody waiting")
		b.findsHeld(tr.mutex(), "after a requeue")
	}
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// The old ID is over as after any release, also while the new request waits.
func requeueEndsTheOldHold(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	again := h.startRequeue(a.ask(tr.mutex()))
	next := w.granted("after the requeue")
	h.isGone("while its requeue waits")
	b.findsHeld(tr.mutex(), "after the old hold was renewed and released")
	next.release()
	second := again.granted("after who has waited")
	h.isOver("when its requeue was granted", b)

	third := second.mustRequeue(a.ask(tr.mutex()), "with nobody waiting")
	second.isOver("when its requeue was granted at once", b)
	_, err := a.acquire(copyOf(second.r))
	tr.mustMatch(err, driver.ErrLost, "an acquire of the hold that a requeue has given back")
	b.findsHeld(tr.mutex(), "after the old hold was asked for again")
	third.release()
}

// isOver is isGone while h's client has another hold of the lock. The late release comes from another client, so that
// it is about the ID and nothing else.
func (h *hold) isOver(when string, by *client) {
	tr := h.c.tr
	tr.Helper()
	if tr.traits.Lifetime == driver.Leases {
		tr.mustMatch(h.c.renew(h.r.Key, h.r.ID, longLease), driver.ErrLost, when+": renewal of the old hold")
	}
	tr.mustMatch(by.end(h.r.Key, h.r.ID), driver.ErrLost, when+": release of the old hold")
	by.findsHeld(h.r.Key, when+" and the old hold was released")
}

// twist makes a requeue one that an engine may not support.
type twist struct {
	name  string
	never bool // no engine supports it
	turn  func(give *driver.Release, r *driver.Request)
}

// twists returns the requests that may be refused.
func twists() []twist {
	return []twist{
		{"a try, which never queues", true, func(_ *driver.Release, r *driver.Request) { r.Try = true }},
		{"a kind that nobody knows", true, func(_ *driver.Release, r *driver.Request) { r.Kind = "drivertest" }},
		{"another lock", false, func(_ *driver.Release, r *driver.Request) { r.Name += "-other" }},
		{"a named owner", false, func(_ *driver.Release, r *driver.Request) { r.Owner, r.Named = "order-7", true }},
		{"a shared request", false, func(_ *driver.Release, r *driver.Request) { r.Mode, r.Limit = driver.Shared, 1 }},
		{"a release that keeps", false, func(give *driver.Release, _ *driver.Request) { give.Keep = settle }},
		{"an undo", false, func(give *driver.Release, _ *driver.Request) { give.Undo = true }},
	}
}

// A refusal must come before the release: otherwise the hold is gone and nothing was asked for.
func unsupportedRequeueChangesNothing(tr *trial) {
	a, b := tr.client(), tr.client()
	for i, t := range twists() {
		h := a.take(a.ask(tr.another(string(rune('a' + i)))))
		give, r := h.give(), a.ask(h.r.Key)
		t.turn(give, r)
		ctx, cancel := tr.bound()
		_, err := a.d.(driver.Requeuer).Requeue(ctx, give, r)
		cancel()
		switch {
		case err == nil && !t.never:
			a.undo(r) // it is supported, so what it was granted goes back
			continue
		case !errors.Is(err, driver.ErrUnsupported) || !driver.IsDefinite(err):
			tr.Fatalf("a requeue with %s says %q, want a definite ErrUnsupported", t.name, text(err))
		}
		b.findsHeld(h.r.Key, "after a requeue with "+t.name)
		if tr.traits.Lifetime == driver.Leases {
			tr.must(a.renew(h.r.Key, h.r.ID, longLease), "renewal after a requeue with "+t.name)
		}
		h.release()
		b.findsFree(h.r.Key, "after a requeue with "+t.name+" was refused and the hold released")
	}
}

// Whoever had lost the hold must not get another one by the same step.
func requeueOfAnEndedHold(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.release()
	r := a.ask(tr.mutex())
	_, err := h.requeue(r)
	tr.mustMatch(err, driver.ErrLost, "a requeue of a hold that is over")
	b.findsFree(tr.mutex(), "after a requeue of a hold that is over")
	next := b.take(b.ask(tr.mutex()))
	r = a.ask(tr.mutex())
	_, err = h.requeue(r)
	tr.mustMatch(err, driver.ErrLost, "a requeue of a hold that is over, with a successor inside")
	c.findsHeld(tr.mutex(), "after a requeue of an earlier hold")
	next.release()
	c.findsFree(tr.mutex(), "after the successor")
}

// The release half has happened by then: the cancel must not bring the old hold back.
func cancelledRequeue(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	again := h.startRequeue(a.ask(tr.mutex()))
	next := w.granted("after the requeue")
	_ = again.isWaiting()
	again.cancel()
	if !again.ends(prompt) {
		tr.Fatalf("a cancelled requeue has not returned within %v", prompt)
	}
	tr.mustMatch(again.err, context.Canceled, "a cancelled requeue")
	h.isGone("after its requeue was cancelled")
	a.undo(again.r)
	c.findsHeld(tr.mutex(), "after the requeue of the holder before was cancelled")
	next.release()
	c.findsFree(tr.mutex(), "in the end")
}

// The outcome of both halves is open, and settling both must free the lock.
func requeueWithEndedContext(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	ctx, cancel := context.WithCancel(tr.Context())
	cancel()
	r := a.ask(tr.mutex())
	again := a.startBy(ctx, r, h.requeueIn)
	if !again.ends(prompt) {
		tr.Fatalf("a requeue has not returned %v after its context ended", prompt)
	}
	if again.err == nil {
		tr.Fatalf("a requeue whose context had ended was granted")
	}
	h.settle(r)
	w.granted("after the requeue was settled").release()
	b.findsFree(tr.mutex(), "in the end")
}

// The cancel comes at any moment of the step, between the halves included.
func cancelRacesWithRequeue(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	random := tr.random()
	for range 20 {
		h := a.take(a.ask(tr.mutex()))
		w := b.start(b.ask(tr.mutex()))
		again := h.startRequeue(a.ask(tr.mutex()))
		tr.pass(time.Duration(random.Int64N(int64(500 * time.Microsecond))))
		again.cancel()
		if !again.ends(prompt) {
			tr.Fatalf("a cancelled requeue has not returned within %v", prompt)
		}
		if again.err == nil { // it came before the wait of b
			again.h.release()
		} else {
			h.settle(again.r)
		}
		next := w.granted("after the requeue was settled")
		c.findsHeld(tr.mutex(), "after the requeue was settled")
		next.release()
		c.findsFree(tr.mutex(), "after a requeue that met its cancel")
	}
}
