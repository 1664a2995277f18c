package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// TestHoldings_AreWhatWasAddedAndNotRemoved compares random histories of holdings with a plain slice, for few holds and
// for many.
func TestHoldings_AreWhatWasAddedAndNotRemoved(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := &Machine{}
	var locks []*Lock
	for i := range 30 {
		kind := []driver.Kind{driver.KindMutex, driver.KindRWMutex}[i%2]
		locks = append(locks, &Lock{Core: c, Name: fmt.Sprint("lock ", r.IntN(100), i), Terms: &Terms{Kind: kind}})
	}
	var h Holdings
	var want []*Hold
	ordered := false
	for step := range 6000 {
		growing := 3 + step/1000%2*3 // it grows for a while, and then goes back to nothing
		switch {
		case r.IntN(8) < growing:
			l := &Hold{Lock: locks[r.IntN(len(locks))]}
			h.Add(l)
			want = append(want, l)
		case len(want) > 0:
			at := r.IntN(len(want))
			h.Remove(want[at])
			h.Remove(want[at]) // a second time does nothing
			want = slices.Delete(want, at, at+1)
		}
		if ordered = ordered || step%1500 > 700; ordered {
			checkLast(t, &h, want)
		}
		if h.Any() != (len(want) > 0) || h.Several() != (len(want) > 1) {
			t.Fatalf("step %d: any %v, several %v of %d", step, h.Any(), h.Several(), len(want))
		}
		m := locks[r.IntN(len(locks))]
		on := slices.DeleteFunc(slices.Clone(want), func(l *Hold) bool { return l.Lock != m })
		if got := slices.Collect(h.OnLock(m.Key())); !slices.Equal(got, on) {
			t.Fatalf("step %d: %d holds on %v, want %d, in their order", step, len(got), m.Key(), len(on))
		}
		if len(want) == 0 {
			ordered = false
		}
	}
	all := slices.Collect(h.All())
	if len(all) != len(want) || slices.ContainsFunc(all, func(l *Hold) bool { return !slices.Contains(want, l) }) {
		t.Errorf("%d in all, want %d", len(all), len(want))
	}
}

// checkLast fails unless h returns the hold that is last in the order of a Multi.
func checkLast(t *testing.T, h *Holdings, want []*Hold) {
	t.Helper()
	last := h.Last()
	for _, l := range want {
		if LaterInMulti(l, last) {
			t.Fatalf("the last of %d is %v, but there is %v", len(want), last.Lock.Key(), l.Lock.Key())
		}
	}
	if (last == nil) != (len(want) == 0) {
		t.Fatalf("the last of %d is %v", len(want), last)
	}
}
