package drivertest

import "github.com/interlock-go/interlock/driver"

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
