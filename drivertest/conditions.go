package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of conditions: giving a lock up and waiting is one step, no signal is missed, and each signal wakes one.

func conditions() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, about: driver.Ability(driver.KindCond), wants: conds}
	}
	return []behaviour{
		able("a wait for a signal gives the lock up, for good", condWaitGivesUp),
		able("a signal wakes one, who gets the lock in its turn", signalWakesOne),
		able("a broadcast wakes all, who get the lock one after the other", broadcastWakesAll),
		able("a signal with nobody waiting is not kept", signalIsNotKept),
		able("who is woken goes behind those who wait for the lock", wokenGoBehind),
		able("a repeated signal wakes nobody twice", repeatedSignal),
		able("a wait of an owner with further holds is refused and changes nothing", nestedCondWait),
		able("a wait without a hold takes nothing", condWaitWithoutHold),
		able("a wait that is given up takes no signal", givenUpBeforeTheSignal),
		able("a signal that meets a wait that is given up goes on to the next", givenUpAfterTheSignal),
		able("a signal goes on when its grant is undone", undoneAfterTheGrant),
		able("a wait that is asked for again goes on, and its signal is not lost", repeatedCondWait),
		able("a wait that is undone before it arrives takes nothing", undoneCondWait),
		able("a signal that meets a dead client goes on to the next", signalOfADeadClient),
		able("tokens grow over a wait", tokensGrowOverACondition),
		able("signals that race with waits wake as many as they should", signalsRaceWithWaits),
	}
}

// The lock is free while its former holder waits for a signal.
func condWaitGivesUp(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := h.park(a.ask(tr.mutex()))
	h.isGone("after it was given up for a wait")
	b.findsFree(tr.mutex(), "while all wait for a signal")
	w.stillWaits("without a signal")
	b.signal(false)
	w.granted("after the signal").release()
}

// A woken waiter still has to wait for the lock, and the other one is not woken.
func signalWakesOne(tr *trial) {
	waits, b := tr.parks(2), tr.client()
	inside := b.take(b.ask(tr.mutex()))
	b.signal(false)
	waits[0].stillWaits("after the signal, while another holds the lock")
	inside.release()
	h := waits[0].granted("after the signal and the release")
	b.findsHeld(tr.mutex(), "after one was woken")
	h.release()
	waits[1].stillWaits("after a signal for one")
	b.signal(false)
	waits[1].granted("after a signal of its own").release()
	b.findsFree(tr.mutex(), "in the end")
}

// All are woken, and get the lock one after the other.
func broadcastWakesAll(tr *trial) {
	waits, b := tr.parks(3), tr.client()
	b.signal(true)
	for _, w := range waits {
		h := w.granted("after a broadcast")
		b.findsHeld(tr.mutex(), "while one who was woken is in")
		h.release()
	}
	b.findsFree(tr.mutex(), "in the end")
}

// A signal with nobody waiting is over, as with sync.Cond.
func signalIsNotKept(tr *trial) {
	b := tr.client()
	b.signal(false)
	b.signal(true)
	w := tr.parks(1)[0]
	w.stillWaits("after signals that came before it waited")
	b.signal(false)
	w.granted("after the signal").release()
}

// A woken waiter must not overtake those who waited for the lock before the signal.
func wokenGoBehind(tr *trial) {
	w, a, b := tr.parks(1)[0], tr.client(), tr.client()
	inside := a.take(a.ask(tr.mutex()))
	first := b.queue(b.ask(tr.mutex()))
	a.signal(false)
	inside.release()
	h := first.granted("who came before the signal")
	w.stillWaits("behind who came before the signal")
	h.release()
	w.granted("in its turn").release()
}

// A retry of a signal must not wake a second waiter.
func repeatedSignal(tr *trial) {
	waits, b := tr.parks(2), tr.client()
	s := &driver.Signal{Key: tr.mutex(), ID: freshName(), Horizon: longLease}
	for range 3 {
		b.signalAs(s)
	}
	waits[0].granted("after the signal").release()
	waits[1].stillWaits("after a signal that was repeated")
	b.signal(false)
	waits[1].granted("after another signal").release()
}

// The other hold would keep the lock, so nobody could signal under it: the wait is refused and changes nothing.
func nestedCondWait(tr *trial) {
	// Without named owners only the portable layer knows of nesting.
	if _, lacks := tr.traits.Lacking(driver.NamedOwners); lacks {
		return
	}
	a, b := tr.client(), tr.client()
	h, other := a.take(a.asOwner("order-7", tr.mutex())), b.take(b.asOwner("order-7", tr.mutex()))
	w := h.startCondWait(a.asOwner("order-7", tr.mutex()))
	if !w.ends(tr.h.Patience) {
		tr.Fatalf("a wait of an owner with further holds goes on")
	}
	tr.mustMatch(w.err, driver.ErrNested, "a wait of an owner with further holds")
	for _, h := range []*hold{h, other} {
		if tr.traits.Lifetime == driver.Leases {
			tr.must(h.c.renew(h.r.Key, h.r.ID, longLease), "renewal after a wait that was refused")
		}
	}
	b.signal(true)
	h.abandon()
	other.abandon()
	b.findsFree(tr.mutex(), "in the end")
}

// The hold after the wait is a new acquisition, with another owner in between.
func tokensGrowOverACondition(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	for range 3 {
		w := h.park(a.ask(tr.mutex()))
		inside := b.take(b.ask(tr.mutex()))
		b.signal(false)
		inside.release()
		next := w.granted("after the signal")
		if next.g.Token <= inside.g.Token || inside.g.Token <= h.g.Token {
			tr.Errorf("the tokens are %d, while it waited %d, and after the signal %d",
				h.g.Token, inside.g.Token, next.g.Token)
		}
		h = next
	}
	h.release()
}

// Without a hold there is nothing to give up, and the request must not be queued either.
func condWaitWithoutHold(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	h.release()
	for _, when := range []string{"of a free lock", "of a lock that another holds"} {
		w := h.startCondWait(a.ask(tr.mutex()))
		if !w.ends(tr.h.Patience) {
			tr.Fatalf("a wait without a hold, %s, goes on", when)
		}
		tr.mustMatch(w.err, driver.ErrLost, "a wait without a hold, "+when)
		if when == "of a free lock" {
			b.findsFree(tr.mutex(), "after a wait without a hold")
			b.take(b.ask(tr.mutex()))
		}
	}
	a.findsHeld(tr.mutex(), "after a wait without a hold")
}

// A waiter that has left must not take the signal.
func givenUpBeforeTheSignal(tr *trial) {
	waits, b := tr.parks(2), tr.client()
	waits[0].givesUp()
	b.signal(false)
	waits[1].granted("after a signal, behind a wait that was given up").release()
	b.findsFree(tr.mutex(), "in the end")
}

// The signal has reached the waiter that gives up, and must go on to the next.
func givenUpAfterTheSignal(tr *trial) {
	waits, b := tr.parks(2), tr.client()
	inside := b.take(b.ask(tr.mutex()))
	b.signal(false)
	waits[0].givesUp()
	inside.release()
	waits[1].granted("after the first who was woken has given up").release()
	b.findsFree(tr.mutex(), "in the end")
}

// The waiter had the lock already, but its answer was lost: the undo passes the signal on.
func undoneAfterTheGrant(tr *trial) {
	waits, b := tr.parks(2), tr.client()
	b.signal(false)
	waits[0].granted("after the signal")
	waits[0].c.undo(waits[0].r) // its answer was lost
	waits[1].granted("after the grant of the first was undone").release()
	b.findsFree(tr.mutex(), "in the end")
}

// The dead one cannot undo anything, so the engine must notice by itself.
func signalOfADeadClient(tr *trial) {
	dead, b := tr.client(), tr.client()
	r := dead.briefly(tr.mutex())
	gone := dead.take(dead.ask(tr.mutex())).park(r)
	next := b.take(b.ask(tr.mutex())).park(b.ask(tr.mutex()))
	tr.crash(dead, gone.wait)
	b.signal(false)
	next.grantedWithin(tr.afterlife(), "after the signal of a dead client").release()
}

// A copy of the wait shares its place and its grant.
func repeatedCondWait(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := h.park(a.ask(tr.mutex()))
	again := h.startCondWait(copyOf(w.r))
	again.stillWaits("a copy of a wait")
	b.findsFree(tr.mutex(), "while a copy waits too")
	b.signal(false)
	first, second := w.granted("after the signal"), again.granted("as a copy")
	if first.g.Token != second.g.Token {
		tr.Errorf("the copy of a wait has token %d, the wait %d", second.g.Token, first.g.Token)
	}
	first.release()
	b.findsFree(tr.mutex(), "in the end")
}

// The undo comes first, and the wait that arrives later takes nothing.
func undoneCondWait(tr *trial) {
	a, b := tr.client(), tr.client()
	h, r := a.take(a.ask(tr.mutex())), a.ask(tr.mutex())
	a.undo(r)
	w := h.startCondWait(r)
	if !w.ends(tr.h.Patience) {
		tr.Fatalf("a wait that was undone before goes on")
	}
	tr.mustMatch(w.err, driver.ErrLost, "a wait that was undone before")
	if err := a.end(h.r.Key, h.r.ID); err != nil && !errors.Is(err, driver.ErrLost) {
		tr.Fatalf("release of what it would have given up: %v", err)
	}
	b.findsFree(tr.mutex(), "after that")
}

// signalsRaceWithWaits has one of a crowd give up while the others are woken, by as many signals as there are others.
// If a signal were lost with the one that leaves, another would sleep for ever.
func signalsRaceWithWaits(tr *trial) {
	const rounds, crowd = 8, 4
	b, random := tr.client(), tr.random()
	var clients [crowd]*client
	for i := range clients {
		clients[i] = tr.client()
	}
	for range rounds {
		waits := make([]*wait, crowd)
		for i, c := range clients {
			waits[i] = c.take(c.ask(tr.mutex())).park(c.ask(tr.mutex())).wait
		}
		gone := random.IntN(crowd)
		signals := tr.signalAtOnce(b, crowd-1)
		tr.pass(time.Duration(random.Int64N(int64(time.Millisecond))))
		waits[gone].cancel()
		if !waits[gone].ends(prompt) {
			tr.Fatalf("a wait for a signal has not returned %v after its context ended", prompt)
		}
		clients[gone].undo(waits[gone].r)
		tr.must(signals(), "signals at once")
		tr.serveAll("after as many signals as wait", slices.Delete(waits, gone, gone+1)...)
		b.findsFree(tr.mutex(), "when all who were woken have released")
	}
}

// Waits for a signal, in the background.

// condWait is a wait for a signal that is under way.
type condWait struct {
	*wait
	parked chan struct{} // closed when the hold has been given up
}

// startCondWait gives h up for a wait for a signal, in the background.
func (h *hold) startCondWait(r *driver.Request) *condWait {
	h.c.tr.Helper()
	conder, can := h.c.d.(driver.Conder)
	if !can {
		h.c.tr.Fatalf("Traits names the kind %s, and the driver has no CondWait and CondSignal", driver.KindCond)
	}
	w := &condWait{parked: make(chan struct{})}
	w.wait = h.c.startBy(h.c.tr.Context(), r, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		return conder.CondWait(ctx, h.give(), r, func() { close(w.parked) })
	})
	return w
}

// park is startCondWait, and returns when the wait has begun.
func (h *hold) park(r *driver.Request) *condWait {
	h.c.tr.Helper()
	w := h.startCondWait(r)
	w.isParked()
	return w
}

// isParked returns when the hold has been given up.
func (w *condWait) isParked() {
	tr := w.c.tr
	tr.Helper()
	timeout := time.NewTimer(tr.h.Patience)
	defer timeout.Stop()
	select {
	case <-w.parked:
	case <-w.done:
		select {
		case <-w.parked:
		default:
			tr.Fatalf("%s: a wait for a signal ended before it began: %s", w.c.name, text(w.err))
		}
	case <-timeout.C:
		tr.Fatalf("%s: a wait for a signal has not begun within %v", w.c.name, tr.h.Patience)
	}
}

// givesUp ends a wait as the portable layer does: context first, then undo.
func (w *condWait) givesUp() {
	w.c.tr.Helper()
	w.cancel()
	if !w.ends(prompt) {
		w.c.tr.Fatalf("a wait for a signal has not returned %v after its context ended", prompt)
	}
	w.c.undo(w.r)
}

// parks makes n waits for a signal, each of another client, in their order.
func (tr *trial) parks(n int) []*condWait {
	tr.Helper()
	waits := make([]*condWait, n)
	for i := range waits {
		c := tr.client()
		waits[i] = c.take(c.ask(tr.mutex())).park(c.ask(tr.mutex()))
	}
	return waits
}

// signalAs sends s and fails if that is not confirmed.
func (c *client) signalAs(s *driver.Signal) {
	c.tr.Helper()
	ctx, cancel := c.tr.bound()
	defer cancel()
	c.tr.must(c.d.(driver.Conder).CondSignal(ctx, s), c.name+": a signal")
}

// signal wakes one waiter, or all.
func (c *client) signal(all bool) {
	c.tr.Helper()
	c.signalAs(&driver.Signal{Key: c.tr.mutex(), ID: freshName(), All: all, Horizon: longLease})
}

// signalAtOnce sends n signals in the background. The function that it returns waits for them.
func (tr *trial) signalAtOnce(c *client, n int) (sent func() error) {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { // ends with its context
			ctx, cancel := tr.bound()
			defer cancel()
			errs[i] = c.d.(driver.Conder).CondSignal(ctx,
				&driver.Signal{Key: tr.mutex(), ID: freshName(), Horizon: longLease})
		})
	}
	return func() error {
		all.Wait()
		return errors.Join(errs...)
	}
}
