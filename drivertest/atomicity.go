package drivertest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
)

// The promise of atomicity: an operation happens wholly or not at all, and only to its own hold.

func atomicity() []behaviour {
	return []behaviour{
		{
			sentence: "a release by an ID that holds nothing is refused and changes nothing",
			run:      strangersReleaseChangesNothing,
		},
		{sentence: "of several releases of one hold at once one ends it", run: oneReleaseEndsTheHold},
		{sentence: "late releases never free the hold of a successor", run: lateReleasesNeverFreeASuccessor},
		{sentence: "a release that meets an acquire loses neither", run: releaseMeetsAcquire},
	}
}

// A lock that is freed without looking at the ID (DEL after SET NX) is the usual mistake.
func strangersReleaseChangesNothing(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	// Also by the holder's own client: an engine that ends whatever the client has would pass with another one alone.
	for _, c := range []*client{a, b} {
		tr.mustMatch(c.end(tr.mutex(), freshName()), driver.ErrLost, c.name+": release by an ID that was never granted")
		b.findsHeld(tr.mutex(), "after "+c.name+" released an ID that was never granted")
	}
	h.release()
	tr.mustMatch(a.end(tr.another("-free"), freshName()), driver.ErrLost, "release of a free lock")
}

// Of copies of a release one ends the hold and the others must say so: a caller reads the difference as a loss.
func oneReleaseEndsTheHold(tr *trial) {
	a := tr.client()
	for range 10 {
		h := a.take(a.ask(tr.mutex()))
		var ended atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				switch err := a.end(tr.mutex(), h.r.ID); {
				case err == nil:
					ended.Add(1)
				case !errors.Is(err, driver.ErrLost):
					tr.Errorf("release: %v", err)
				}
			})
		}
		all.Wait()
		if n := ended.Load(); n != 1 {
			tr.Fatalf("%d of 4 releases at once say that they ended the hold, want 1", n)
		}
	}
}

// Releases of earlier holds come together while a successor is inside.
func lateReleasesNeverFreeASuccessor(tr *trial) {
	a, b := tr.client(), tr.client()
	var old []string
	for range 5 {
		h := a.take(a.ask(tr.mutex()))
		h.release()
		old = append(old, h.r.ID)
	}
	h := a.take(a.ask(tr.mutex()))
	var all sync.WaitGroup
	for _, id := range old {
		for _, c := range []*client{a, b} {
			all.Go(func() {
				if err := c.end(tr.mutex(), id); !errors.Is(err, driver.ErrLost) {
					tr.Errorf("%s: release of a hold that ended before: %s, want ErrLost", c.name, text(err))
				}
			})
		}
	}
	all.Wait()
	b.findsHeld(tr.mutex(), "after late releases of earlier holds")
	h.release()
}

// The release and the next acquire meet in any order. A waiter that is queued after the release has looked at the queue
// would sleep for ever.
func releaseMeetsAcquire(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	next, last := b, a
	for range 20 {
		// The acquire is not known to wait yet: it may come before, during or after the release.
		w := next.start(next.ask(tr.mutex()))
		h.release()
		h = w.granted("after the release that it met")
		next, last = last, next
	}
	h.release()
	next.findsFree(tr.mutex(), "in the end")
}
