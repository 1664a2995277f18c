package drivertest

import (
	"context"
	mathrand "math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of cancellation: a wait can be given up at any moment, and leaves nothing once it is undone. It is the
// portable layer's part to undo (package driver).

// prompt bounds how long a call may go on after its context has ended. The contract says 50 ms; a loaded machine needs
// more, and may stand still for a second or two.
const prompt = 5 * time.Second

func cancellation() []behaviour {
	return []behaviour{
		{sentence: "a cancelled wait returns at once, with the context's error", run: cancelledWaitReturns},
		{sentence: "a wait whose deadline passes returns, with the context's error", run: expiredWaitReturns},
		{sentence: "an acquire whose context has ended takes nothing", run: endedContextTakesNothing},
		{sentence: "a cancelled wait leaves nothing queued once it is undone", run: undoneWaitLeavesNothing},
		{
			sentence: "who waits behind a wait that is undone is not let in beside the holder",
			run:      waitBehindAnUndoneOneGoesOn,
		},
		{sentence: "a cancelled wait leaves the other holds of its client alone", run: cancelLeavesOtherHolds},
		{sentence: "undo ends a wait that still goes on", run: undoEndsARunningWait},
		{sentence: "undo frees what was granted", run: undoFreesAGrant},
		{sentence: "undo refuses a request that arrives later", run: undoRefusesALateRequest},
		{sentence: "a cancel that races with the grant leaves nothing", run: cancelRacesWithGrant},
		{sentence: "a release whose context has ended can be asked again", run: releaseWithEndedContext},
	}
}

// A wait that ended only with the lock would keep its caller, so the time is bounded as well as the error.
func cancelledWaitReturns(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	w.cancel()
	if !w.ends(prompt) {
		tr.Fatalf("a cancelled wait has not returned within %v", prompt)
	}
	tr.mustMatch(w.err, context.Canceled, "a cancelled wait")
	b.undo(w.r)
	h.release()
}

// The same for a deadline, which some client libraries handle by themselves.
func expiredWaitReturns(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	ctx, cancel := context.WithTimeout(tr.Context(), settle)
	defer cancel()
	w := b.startWith(ctx, b.ask(tr.mutex()))
	if !w.ends(prompt) {
		tr.Fatalf("a wait has not returned %v after its deadline", prompt)
	}
	tr.mustMatch(w.err, context.DeadlineExceeded, "a wait whose deadline has passed")
	b.undo(w.r)
	h.release()
}

// An engine may notice late that the context has ended, but then it must not have taken the lock.
func endedContextTakesNothing(tr *trial) {
	a, b := tr.client(), tr.client()
	ctx, cancel := context.WithCancel(tr.Context())
	cancel()
	for _, try := range []bool{false, true} {
		r := a.ask(tr.mutex())
		r.Try = try
		if _, err := a.d.Acquire(ctx, r); err == nil {
			tr.Fatalf("an acquire whose context had ended was granted (try: %v)", try)
		}
		b.findsFree(tr.mutex(), "after an acquire whose context had ended")
	}
}

// A place that stays in the queue would be granted later, to nobody.
func undoneWaitLeavesNothing(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	first := b.queue(b.ask(tr.mutex()))
	second := c.queue(c.ask(tr.mutex()))
	first.stop()
	b.undo(first.r)
	b.undo(first.r) // nothing is left, and that is no error
	h.release()
	second.granted("behind a wait that was undone").release()
	a.findsFree(tr.mutex(), "in the end")
}

// waitBehindAnUndoneOneGoesOn is about engines whose waiters watch the one before them: its end is not the holder's.
func waitBehindAnUndoneOneGoesOn(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	for range 2 {
		first := b.queue(b.ask(tr.mutex()))
		behind := c.queue(c.ask(tr.mutex()))
		first.stop()
		b.undo(first.r)
		behind.stillWaits("behind a wait that was undone, with the lock held")
		b.findsHeld(tr.mutex(), "after a wait was undone")
		h.release()
		h = behind.granted("after the holder")
	}
	h.release()
}

// cancelLeavesOtherHolds is about clients that can end a wait only by closing their connection: the holds on it must
// not go with it.
func cancelLeavesOtherHolds(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	own := b.take(b.ask(tr.another("-own")))
	w := b.queue(b.ask(tr.mutex()))
	w.stop()
	c.findsHeld(own.r.Key, "after its holder has cancelled a wait for another lock")
	b.undo(w.r)
	c.findsHeld(own.r.Key, "after its holder has undone a wait for another lock")
	own.release()
	h.release()
}

// The undo comes while the acquire still runs: neither may be granted afterwards.
func undoEndsARunningWait(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	undone := b.queue(b.ask(tr.mutex()))
	behind := c.queue(c.ask(tr.mutex()))
	b.undo(undone.r)
	h.release()
	behind.granted("behind a wait that was undone").release()
	undone.stop() // an engine may end the wait at once, or leave it to its context
	if undone.err == nil {
		tr.Errorf("a wait was granted although it had been undone")
	}
	a.findsFree(tr.mutex(), "in the end")
}

// The grant was never taken note of, so the undo is what frees it.
func undoFreesAGrant(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	a.undo(h.r)
	w.granted("after the undo of the hold before").release()
	tr.mustMatch(a.end(tr.mutex(), h.r.ID), driver.ErrLost, "release of what was undone")
}

// A copy of a request that arrives after its undo must take nothing: one that never arrived before, and one that has
// waited.
func undoRefusesALateRequest(tr *trial) {
	a, b := tr.client(), tr.client()
	never := a.ask(tr.mutex())
	a.undo(never)
	waited := a.ask(tr.mutex())
	h := b.take(b.ask(tr.mutex()))
	w := a.queue(waited)
	w.stop()
	a.undo(waited)
	h.release()
	for _, late := range []*driver.Request{never, waited} {
		_, err := a.acquire(late)
		tr.mustMatch(err, driver.ErrLost, "an acquire that arrives after its undo")
		b.findsFree(tr.mutex(), "after an acquire that was undone before")
	}
}

// Cancel and grant meet within half a millisecond, in either order. Whatever the acquire says, nothing may be left
// after its undo or release.
func cancelRacesWithGrant(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	random, granted := tr.random(), 0
	const rounds = 30
	for range rounds {
		h := a.take(a.ask(tr.mutex()))
		w := b.start(b.ask(tr.mutex()))
		w.cancelAround(random, h.release)
		if w.err == nil {
			granted++
			w.h.release()
		} else {
			b.undo(w.r)
		}
		c.findsFree(tr.mutex(), "after a cancel that met the grant")
	}
	tr.Logf("%d of %d waits were granted before their cancel", granted, rounds)
}

// cancelAround cancels the wait a moment before or after do, and returns when the wait has ended.
func (w *wait) cancelAround(random *mathrand.Rand, do func()) {
	tr := w.c.tr
	tr.Helper()
	gap := time.Duration(random.Int64N(int64(500 * time.Microsecond)))
	first, second := do, w.cancel
	if random.IntN(2) == 0 {
		first, second = w.cancel, do
	}
	first()
	tr.pass(gap)
	second()
	if !w.ends(prompt) {
		tr.Fatalf("a cancelled wait has not returned within %v", prompt)
	}
}

// A release whose context has ended may or may not be carried out. Asked again, it must end in a free lock, and only
// one of the two may say that it ended the hold.
func releaseWithEndedContext(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	ctx, cancel := context.WithCancel(tr.Context())
	cancel()
	returned := make(chan error, 1)
	go func() { // ends with Release
		returned <- a.d.Release(ctx, &driver.Release{Key: tr.mutex(), ID: h.r.ID})
	}()
	timeout := time.NewTimer(prompt)
	defer timeout.Stop()
	var first error
	select {
	case first = <-returned:
	case <-timeout.C:
		tr.Fatalf("a release has not returned %v after its context ended", prompt)
	}
	second := a.end(tr.mutex(), h.r.ID)
	if second != nil {
		tr.mustMatch(second, driver.ErrLost, "a release asked again")
	} else if first == nil {
		tr.Errorf("both releases say that they ended the hold")
	}
	b.findsFree(tr.mutex(), "after the release was asked again")
}
