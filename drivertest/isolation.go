package drivertest

import (
	"strings"

	"github.com/interlock-go/interlock/driver"
)

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
