package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// The promise of order: waiters are told, served, and in turn.

func order() []behaviour {
	inOrder := needing(driver.Order)
	return []behaviour{
		{sentence: "a waiter is told that another has the lock", run: waiterIsTold},
		{sentence: "every waiter is served", run: everyWaiterIsServed},
		{sentence: "waiters are served first come, first served", run: waitersAreServedInOrder, needs: inOrder},
		{sentence: "a try never gets in before those who wait", run: tryNeverOvertakes, needs: inOrder},
	}
}

// Waiting is how a wait that its context ends knows "held by another" from "no answer". So it must be called for a held
// lock, and only for one.
func waiterIsTold(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.start(b.ask(tr.mutex()))
	held := w.isWaiting()
	if held == nil || held.Kind != driver.KindMutex || held.Name != tr.name {
		tr.Errorf("Waiting was called with %+v, want the kind and the name of the lock", held)
	}
	h.release()
	w.granted("after the release").release()

	// A request that finds nobody in the way does not wait.
	free := b.start(b.ask(tr.another("-free")))
	free.granted("of a free lock").release()
	select {
	case held := <-free.told:
		tr.Errorf("Waiting was called for a free lock: %v", held)
	default:
	}
}

// fourWait takes the mutex and queues four waiters of two clients.
func (tr *trial) fourWait() (h *hold, waits []*wait) {
	tr.Helper()
	clients := []*client{tr.client(), tr.client()}
	h = clients[0].take(clients[0].ask(tr.mutex()))
	for i := range 4 {
		c := clients[i%2]
		waits = append(waits, c.queue(c.ask(tr.mutex())))
	}
	return h, waits
}

// The waiters release as they are served, so that one lost wake-up leaves the rest asleep.
func everyWaiterIsServed(tr *trial) {
	h, waits := tr.fourWait()
	h.release()
	var all sync.WaitGroup
	for _, w := range waits {
		all.Go(func() {
			if !w.ends(tr.h.Patience) || w.err != nil {
				tr.Errorf("a waiter was not served: %s", text(w.err))
				return
			}
			if err := w.c.endUntilKnown(tr.mutex(), w.r.ID); err != nil {
				tr.Errorf("release: %v", err)
			}
		})
	}
	all.Wait()
}

// One waiter after the other is let in, and the order is noted.
func waitersAreServedInOrder(tr *trial) {
	h, waits := tr.fourWait()
	var got []int
	for range waits {
		h.release()
		var i int
		tr.until(fmt.Sprintf("the release after %v were served lets in another", got), func() error {
			if i = slices.IndexFunc(waits, func(w *wait) bool { return w != nil && w.ends(0) }); i < 0 {
				return fmt.Errorf("%d still wait", len(waits)-len(got))
			}
			return nil
		})
		got = append(got, i)
		h, waits[i] = waits[i].granted("in its turn"), nil
	}
	h.release()
	if !slices.IsSorted(got) {
		tr.Errorf("the waiters 0 1 2 3 were served in the order %v", got)
	}
}

// seesWaiting returns when the engine lists n or more waiters for the mutex, if it can list them. Some engines say that
// a wait begins just before it does, and on a busy machine that is well before.
func (c *client) seesWaiting(n int) {
	tr := c.tr
	tr.Helper()
	if _, lacks := tr.traits.Lacking(driver.Waiters); lacks {
		return
	}
	tr.until(fmt.Sprintf("%d or more are listed as waiting", n), func() error {
		if info, _ := c.shows(tr.mutex()); len(info.Waiters) < n {
			return fmt.Errorf("the lock is listed as %+v", info)
		}
		return nil
	})
}

// The lock is handed along a queue while a client without a place in it tries all the time. A try could get in at each
// moment between a release and the next grant.
func tryNeverOvertakes(tr *trial) {
	a, b, hasty := tr.client(), tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	waits := []*wait{b.queue(b.ask(tr.mutex())), a.queue(a.ask(tr.mutex())), b.queue(b.ask(tr.mutex()))}
	hasty.seesWaiting(2) // of the clients; one may have only one of its waits in the queue
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop, which is closed below and on every failure
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := hasty.try(tr.mutex())
			if err == nil {
				tr.Errorf("a try got in before those who wait")
				got.abandon()
				return
			}
			if !errors.Is(err, driver.ErrHeld) {
				tr.Errorf("a try says: %v", err)
				return
			}
			tr.pass(settle / 50)
		}
	}()
	end := sync.OnceFunc(func() { close(stop); <-stopped })
	tr.Cleanup(end)
	for _, w := range waits {
		h.release()
		h = w.granted("in its turn")
		tr.pass(settle / 5)
	}
	end()
	h.release()
}

// The promise of resuming: a wait can be left and taken up again at the same place (Traits.Resumes). The portable layer
// leaves one whenever the caller in whose goroutine it runs gives up.

func resuming() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, wants: resumes}
	}
	return []behaviour{
		{
			sentence: "a wait that is taken up again is in the place that it had", run: resumedWaitIsInItsPlace,
			wants: resumes, needs: needing(driver.Order),
		},
		able("the end of a wait's context does not end its place", leftWaitKeepsItsPlace),
		able("a grant that comes while nobody acquires waits for the next acquire", grantWaitsForTheAcquire),
		able("a cancel that races with the grant loses nothing for who takes the wait up again", cancelRacesWithResume),
		able("a wait that was taken up again can be undone", resumedWaitIsUndone),
		able("a grant that comes while nobody acquires can be undone", unheardGrantIsUndone),
	}
}

// leave queues r, ends its context, and returns when the acquire has returned.
func (c *client) leave(r *driver.Request) {
	c.tr.Helper()
	c.queue(copyOf(r)).stop()
}

// leftBehind has a hold the mutex, and b leave a wait for it.
func leftBehind(a, b *client) (h *hold, r *driver.Request) {
	a.tr.Helper()
	h, r = a.take(a.ask(a.tr.mutex())), b.ask(b.tr.mutex())
	b.leave(r)
	return h, r
}

// resume takes up a wait that was left. The engine need not say again who is in the way, so nothing tells when it
// waits.
func (c *client) resume(r *driver.Request) *wait { return c.start(copyOf(r)) }

// Another waiter comes while nobody acquires. An engine that queues anew would serve it first.
func resumedWaitIsInItsPlace(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h, r := leftBehind(a, b)
	behind := c.queue(c.ask(tr.mutex()))
	again := b.resume(r)
	tr.pass(settle)
	again.stop()
	w := b.resume(r)
	tr.pass(settle)
	h.release()
	first := w.granted("before who came while nobody acquired")
	behind.stillWaits("behind who had come before")
	first.release()
	behind.granted("after who had come before").release()
	a.findsFree(tr.mutex(), "in the end")
}

// leftWaitKeepsItsPlace asks for nothing between the end of the context and the release, so the place is the only thing
// that can be lost.
func leftWaitKeepsItsPlace(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h, r := leftBehind(a, b)
	tr.pass(settle)
	h.release()
	tr.pass(settle)
	c.findsHeld(tr.mutex(), "after the release, with a wait that was left")
	b.undo(r)
	c.findsFree(tr.mutex(), "in the end")
}

// The grant comes while nobody acquires, and must still be there for the next acquire.
func grantWaitsForTheAcquire(tr *trial) {
	a, b := tr.client(), tr.client()
	h, r := leftBehind(a, b)
	h.release()
	tr.pass(settle)
	b.resume(r).granted("after the release that came before it").release()
	a.findsFree(tr.mutex(), "in the end")
}

// cancelRacesWithResume is what happens to those who stand behind a waiter whose time is over at the moment of the
// release.
func cancelRacesWithResume(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	random, granted := tr.random(), 0
	const rounds = 30
	for range rounds {
		h := a.take(a.ask(tr.mutex()))
		r := b.ask(tr.mutex())
		w := b.start(copyOf(r))
		w.cancelAround(random, h.release)
		if w.err == nil {
			granted++
		} else {
			w = b.resume(r)
		}
		next := w.granted("after a cancel that met the grant")
		c.findsHeld(tr.mutex(), "after a cancel that met the grant")
		next.release()
		c.findsFree(tr.mutex(), "after one release")
	}
	tr.Logf("%d of %d waits were granted before their cancel", granted, rounds)
}

// An undo must find the place although the wait was left and resumed.
func resumedWaitIsUndone(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	h, r := leftBehind(a, b)
	behind := c.queue(c.ask(tr.mutex()))
	again := b.resume(r)
	tr.pass(settle)
	again.stop()
	b.undo(r)
	h.release()
	behind.granted("behind a wait that was undone").release()
	a.findsFree(tr.mutex(), "in the end")
}

// A grant that nobody has heard of keeps the lock until it is undone.
func unheardGrantIsUndone(tr *trial) {
	a, b := tr.client(), tr.client()
	h, r := leftBehind(a, b)
	h.release()
	tr.pass(settle)
	b.undo(r)
	a.findsFree(tr.mutex(), "after the undo")
}
