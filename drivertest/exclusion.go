package drivertest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of exclusion: a lock has one holder, whoever asks and however many at once.

func exclusion() []behaviour {
	return []behaviour{
		{sentence: "a held lock is refused to a try, and the refusal takes nothing", run: tryOfHeldIsRefused},
		{sentence: "a waiter is let in by the release and not before", run: waiterIsLetInByRelease},
		{sentence: "of many tries at once one is granted", run: oneOfManyTries},
		{sentence: "a crowd of clients is never inside together", run: crowdIsNeverInsideTogether},
	}
}

// A refused try must leave nothing behind, so the lock is tried several times and must be free at once after the
// release. The same client is refused too: holds belong to requests, not to connections.
func tryOfHeldIsRefused(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	for range 3 {
		b.findsHeld(tr.mutex(), "while another client holds it")
	}
	a.findsHeld(tr.mutex(), "while the same client holds it for somebody else")
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// The wait is watched while the lock is held: an engine that lets in too early would otherwise pass.
func waiterIsLetInByRelease(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.ask(tr.mutex()))
	w := b.queue(b.ask(tr.mutex()))
	w.stillWaits("while the lock is held")
	h.release()
	w.granted("after the release").release()
}

// Tries start together from several clients, which catches an engine that looks and then takes in two steps.
func oneOfManyTries(tr *trial) {
	clients := []*client{tr.client(), tr.client(), tr.client()}
	for range 10 {
		var granted atomic.Int32
		var winner atomic.Pointer[hold]
		var all sync.WaitGroup
		start := make(chan struct{})
		for i := range 6 {
			c := clients[i%len(clients)]
			all.Go(func() {
				<-start
				h, err := c.try(tr.mutex())
				switch {
				case err == nil:
					granted.Add(1)
					winner.Store(h)
				// Errorf and not Fatalf, which only the behaviour's own goroutine may call.
				case !errors.Is(err, driver.ErrHeld):
					tr.Errorf("a try says: %v", err)
				}
			})
		}
		close(start)
		all.Wait()
		if n := granted.Load(); n != 1 {
			tr.Fatalf("of 6 tries at once %d were granted, want 1", n)
		}
		winner.Load().release()
	}
}

// Each worker counts itself in and out. Two at once is a fault of the lock, whatever the engine has answered.
func crowdIsNeverInsideTogether(tr *trial) {
	const workers, rounds = 9, 5
	clients := []*client{tr.client(), tr.client(), tr.client()}
	var inside, visits, crowds atomic.Int32
	var all sync.WaitGroup
	for i := range workers {
		c := clients[i%len(clients)]
		all.Go(func() {
			for range rounds {
				h, err := c.acquire(c.ask(tr.mutex()))
				if err != nil {
					tr.Errorf("%s: acquire: %v", c.name, err)
					return
				}
				if inside.Add(1) != 1 {
					crowds.Add(1)
				}
				visits.Add(1)
				tr.pass(time.Millisecond) // so that the others come and wait
				inside.Add(-1)
				if err := c.endUntilKnown(tr.mutex(), h.r.ID); err != nil {
					tr.Errorf("%s: release: %v", c.name, err)
				}
			}
		})
	}
	all.Wait()
	if n := crowds.Load(); n > 0 {
		tr.Errorf("%d of %d grants were made while another client was inside", n, visits.Load())
	}
	if n := visits.Load(); !tr.Failed() && n != workers*rounds {
		tr.Errorf("%d visits, want %d", n, workers*rounds)
	}
}

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

// The promise of isolation: locks do not touch each other, whatever their names and kinds.

func isolation() []behaviour {
	return []behaviour{
		{sentence: "names are compared byte by byte", run: namesAreComparedByteByByte},
		{sentence: "names may be 512 bytes long and differ in the last", run: longNamesDiffer},
		{
			sentence: "kinds have name spaces of their own", run: kindsDoNotMeet,
			kinds: []driver.Kind{driver.KindMutex, driver.KindRWMutex},
		},
		{sentence: "a release of one lock leaves the others held", run: releaseLeavesOthersHeld},
		{sentence: "the ID of a hold is nothing on another lock", run: idMeansNothingElsewhere},
		{sentence: "a waiter is not served by the release of another lock", run: waiterIsNotServedByAnotherLock},
	}
}

// The names are pairs that some store takes for one: by folding case, composing Unicode, trimming space, cleaning a
// path, or expanding a pattern.
func namesAreComparedByteByByte(tr *trial) {
	a, b := tr.client(), tr.client()
	var holds []*hold
	for _, suffix := range []string{
		"x", "X", "x ", " x", "x\t", "x\n", "x\x00", "x/", "/x", "x/y", "x/../x", "..", ".", "x.", "x:y", "{x}", "x%20",
		"x*", "x?", "x'", "x\"", "x\\", "x_", "é", "e\u0301", "É", "ß", "ss", "ı", "i", "I", "İ", "K", "\u212a", "锁",
		"🔒", "-x", "x,y",
	} {
		h, err := a.try(tr.another(suffix))
		if err != nil {
			tr.Fatalf("with other names held, a try of the free lock %q says: %v", tr.name+suffix, err)
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		b.findsHeld(h.r.Key, "after it was taken")
	}
	for _, h := range holds {
		h.release()
	}
}

// The names differ in the last of 512 bytes, where a store with shorter names would cut.
func longNamesDiffer(tr *trial) {
	a, b := tr.client(), tr.client()
	long := strings.Repeat("n", 511-len(tr.name))
	first := a.take(a.ask(tr.another(long + "1")))
	second := b.take(b.ask(tr.another(long + "2")))
	first.release()
	a.findsHeld(second.r.Key, "after the release of another long name")
	second.release()
}

// Each kind is a name space: a mutex and a semaphore of one name are two locks.
func kindsDoNotMeet(tr *trial) {
	a, b := tr.client(), tr.client()
	var holds []*hold
	for _, k := range tr.h.Kinds {
		r := a.ask(tr.key(k))
		switch k {
		case driver.KindSemaphore:
			r.Mode, r.Limit = driver.Shared, 1
		case driver.KindMutex, driver.KindRWMutex:
		default:
			continue // not locks that a request of its own takes
		}
		h, err := a.tryFor(r)
		tr.must(err, "with another kind of the same name held, a try of the free "+string(k))
		holds = append(holds, h)
	}
	holds[0].release()
	for _, h := range holds[1:] {
		r := *h.r
		r.ID = freshName()
		b.isRefused(&r, "after the release of another kind of the same name")
		h.release()
	}
}

// One client holds both locks, so a release that frees whatever the client has would free the other one.
func releaseLeavesOthersHeld(tr *trial) {
	a, b := tr.client(), tr.client()
	one, two := a.take(a.ask(tr.another("-1"))), a.take(a.ask(tr.another("-2")))
	one.release()
	b.findsHeld(two.r.Key, "after the release of another lock")
	b.findsFree(one.r.Key, "after its release")
	two.release()
}

// An ID names a hold only together with its lock.
func idMeansNothingElsewhere(tr *trial) {
	a, b := tr.client(), tr.client()
	one, two := a.take(a.ask(tr.another("-1"))), b.take(b.ask(tr.another("-2")))
	tr.mustMatch(a.end(two.r.Key, one.r.ID), driver.ErrLost, "release with the ID of another lock's hold")
	b.findsHeld(one.r.Key, "after a release with its ID on another lock")
	a.findsHeld(two.r.Key, "after a release with another lock's ID")
	one.release()
	two.release()
}

// The waiter stands at a lock of the same client as the one that is released.
func waiterIsNotServedByAnotherLock(tr *trial) {
	a, b := tr.client(), tr.client()
	one, two := a.take(a.ask(tr.another("-1"))), a.take(a.ask(tr.another("-2")))
	w := b.queue(b.ask(two.r.Key))
	one.release()
	w.stillWaits("after the release of another lock")
	two.release()
	w.granted("after the release of its lock").release()
}
