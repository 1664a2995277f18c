package interlock

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
	c := &Client{}
	c.shell = c
	var locks []*lock
	for i := range 30 {
		kind := []Kind{KindMutex, driver.KindRWMutex}[i%2]
		locks = append(locks, &lock{c: &c.core, name: fmt.Sprint("lock ", r.IntN(100), i), p: &params{kind: kind}})
	}
	var h holdings
	var want []*Lease
	ordered := false
	for step := range 6000 {
		growing := 3 + step/1000%2*3 // it grows for a while, and then goes back to nothing
		switch {
		case r.IntN(8) < growing:
			l := &Lease{m: locks[r.IntN(len(locks))]}
			h.add(l)
			want = append(want, l)
		case len(want) > 0:
			at := r.IntN(len(want))
			h.remove(want[at])
			h.remove(want[at]) // a second time does nothing
			want = slices.Delete(want, at, at+1)
		}
		if ordered = ordered || step%1500 > 700; ordered {
			checkLast(t, &h, want)
		}
		if h.any() != (len(want) > 0) || h.several() != (len(want) > 1) {
			t.Fatalf("step %d: any %v, several %v of %d", step, h.any(), h.several(), len(want))
		}
		m := locks[r.IntN(len(locks))]
		on := slices.DeleteFunc(slices.Clone(want), func(l *Lease) bool { return l.m != m })
		if got := slices.Collect(h.onLock(m.key())); !slices.Equal(got, on) {
			t.Fatalf("step %d: %d holds on %v, want %d, in their order", step, len(got), m.key(), len(on))
		}
		if len(want) == 0 {
			ordered = false
		}
	}
	all := slices.Collect(h.all())
	if len(all) != len(want) || slices.ContainsFunc(all, func(l *Lease) bool { return !slices.Contains(want, l) }) {
		t.Errorf("%d in all, want %d", len(all), len(want))
	}
}

// checkLast fails unless h returns the hold that is last in the order of a Multi.
func checkLast(t *testing.T, h *holdings, want []*Lease) {
	t.Helper()
	last := h.last()
	for _, l := range want {
		if laterInMulti(l, last) {
			t.Fatalf("the last of %d is %v, but there is %v", len(want), last.m.key(), l.m.key())
		}
	}
	if (last == nil) != (len(want) == 0) {
		t.Fatalf("the last of %d is %v", len(want), last)
	}
}
