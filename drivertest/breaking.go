package drivertest

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of breaking: an operator can end a hold, names it by a token, and the holder is told.

func breaking() []behaviour {
	able := needing(driver.Breaking)
	return []behaviour{
		{sentence: "a broken hold is lost, is told so, and lets in who waits", run: brokenHoldIsLost, needs: able},
		{sentence: "any token of the block names the hold", run: anyTokenOfTheBlockBreaks, needs: able},
		{
			sentence: "a token that is not current breaks nothing and learns the current one",
			run:      staleTokenBreaksNothing, needs: able,
		},
		{sentence: "a free lock cannot be broken", run: freeLockCannotBeBroken, needs: able},
		{sentence: "a released hold is not told that it was lost", run: releasedHoldIsNotToldLost, needs: able},
		{
			sentence: "of several holds that were taken in one step one is broken, and told", run: oneOfSeveralIsBroken,
			needs: able, wants: bundles,
		},
		{
			sentence: "all holds of a named owner are broken together", run: allHoldsOfAnOwnerAreBroken,
			needs: needing(driver.Breaking, driver.NamedOwners),
		},
	}
}

// breaks ends the hold with the given token from outside.
func (c *client) breaks(key driver.Key, token uint64) error {
	c.tr.Helper()
	b, ok := c.d.(driver.Breaker)
	if !ok {
		c.tr.Fatalf("the driver has no Break, and does not declare that it lacks %q", driver.Breaking)
	}
	ctx, cancel := c.tr.bound()
	defer cancel()
	return b.Break(ctx, key, token)
}

// losses makes r report the reasons with which Lost is called.
func losses(r *driver.Request) <-chan driver.LostReason {
	told := make(chan driver.LostReason, 4) // Lost must not block, and should be called at most once
	r.Lost = func(reason driver.LostReason, _ error) { told <- reason }
	return told
}

// isTold fails unless Lost is called with the reason, and once.
func (tr *trial) isTold(told <-chan driver.LostReason, want driver.LostReason) {
	tr.Helper()
	timeout := time.NewTimer(tr.h.Patience)
	defer timeout.Stop()
	select {
	case got := <-told:
		if got != want {
			tr.Errorf("Request.Lost was called with %q, want %q", got, want)
		}
	case <-timeout.C:
		tr.Fatalf("Request.Lost must be called with %q, and was not called within %v", want, tr.h.Patience)
	}
	tr.isNotTold(told, "a second time")
}

// isNotTold fails if Lost is called within settle.
func (tr *trial) isNotTold(told <-chan driver.LostReason, when string) {
	tr.Helper()
	tr.pass(settle)
	select {
	case got := <-told:
		tr.Errorf("Request.Lost was called %s, with %q", when, got)
	default:
	}
}

// The next waiter is in by the time that the holder is told, so the holder's release must not touch it.
func brokenHoldIsLost(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.ask(tr.mutex())
	told := losses(r)
	h := a.take(r)
	w := b.queue(b.ask(tr.mutex()))
	tr.must(b.breaks(tr.mutex(), h.g.Token), "break")
	next := w.granted("after the break")
	h.isGone("after the break")
	tr.isTold(told, driver.LostBroken)
	a.findsHeld(tr.mutex(), "after the broken hold was released")
	next.release()
}

// After local passes the operator may see any token of the block.
func anyTokenOfTheBlockBreaks(tr *trial) {
	a, b := tr.client(), tr.client()
	for _, last := range []bool{false, true} {
		r := a.ask(tr.mutex())
		r.Tokens = 16
		h := a.take(r)
		token := h.g.Token
		if last {
			token += uint64(h.g.Tokens) - 1
		}
		tr.must(b.breaks(tr.mutex(), token), "break by a token of the block")
		b.findsFree(tr.mutex(), "after the break")
		h.isGone("after the break")
	}
}

// The operator has looked a moment ago. A token of an earlier hold, one of no hold and zero must break nothing, and the
// error must name the current one.
func staleTokenBreaksNothing(tr *trial) {
	a, b := tr.client(), tr.client()
	old := a.take(a.ask(tr.mutex()))
	old.release()
	r := a.ask(tr.mutex())
	told := losses(r)
	h := a.take(r)
	for _, token := range []uint64{old.g.Token, h.g.Token + uint64(h.g.Tokens), 0} {
		err := b.breaks(tr.mutex(), token)
		var held *driver.HeldError
		if !errors.As(err, &held) || held.Token != h.g.Token {
			tr.Fatalf("break by a token that is not current says %q, want a *HeldError with token %d",
				text(err), h.g.Token)
		}
		b.findsHeld(tr.mutex(), "after a break by a token that is not current")
	}
	tr.isNotTold(told, "although nothing was broken")
	h.release()
}

// A free lock has no holder to break, whether it was held before or not.
func freeLockCannotBeBroken(tr *trial) {
	a := tr.client()
	tr.mustMatch(a.breaks(tr.mutex(), 1), driver.ErrNotHeld, "break of a lock that was never held")
	h := a.take(a.ask(tr.mutex()))
	h.release()
	tr.mustMatch(a.breaks(tr.mutex(), h.g.Token), driver.ErrNotHeld, "break of a lock that was released")
}

// The successor is broken. A loss that is told by lock, and not by hold, would reach the one before.
func releasedHoldIsNotToldLost(tr *trial) {
	a, b := tr.client(), tr.client()
	r := a.ask(tr.mutex())
	told := losses(r)
	a.take(r).release()
	next := b.take(b.ask(tr.mutex()))
	tr.must(a.breaks(tr.mutex(), next.g.Token), "break of the successor")
	tr.isNotTold(told, "after the release, when the successor was broken")
}

// The holds of one named owner share a token, so a break by it ends all of them.
func allHoldsOfAnOwnerAreBroken(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	ra, rb := a.asOwner("order-7", tr.mutex()), b.asOwner("order-7", tr.mutex())
	toldA, toldB := losses(ra), losses(rb)
	first, second := a.take(ra), b.take(rb)
	tr.must(c.breaks(tr.mutex(), first.g.Token), "break")
	tr.isTold(toldA, driver.LostBroken)
	tr.isTold(toldB, driver.LostBroken)
	first.isGone("after the break")
	second.isGone("after the break")
	c.findsFree(tr.mutex(), "after the break")
}

// Locks taken in one step are holds of their own: a break of one leaves the others alone.
func oneOfSeveralIsBroken(tr *trial) {
	a, b := tr.client(), tr.client()
	rs := a.askAll(tr.several())
	told, others := losses(rs[1]), losses(rs[2])
	holds := a.takeAll(rs, "at first")
	tr.must(b.breaks(rs[1].Key, holds[1].g.Token), "break of one of several")
	tr.isTold(told, driver.LostBroken)
	tr.isNotTold(others, "when another was broken")
	b.findsFree(rs[1].Key, "after the break")
	releaseAll([]*hold{holds[0], holds[2], holds[3]})
}
