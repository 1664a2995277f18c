package run

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// A fault is on the one way that there is; of several it is on all, or on some, and on each of them sometimes.
func TestLinks_SomeOrAllOfThem(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	one := links{{}}
	if got := one.some(dice); len(got) != 1 {
		t.Errorf("of one: %d", len(got))
	}
	five := links{{}, {}, {}, {}, {}}
	whole, counts, hit := 0, map[int]bool{}, map[*servers.Proxy]bool{}
	for range 1000 {
		got := five.some(dice)
		if len(got) == len(five) {
			whole++
			continue
		}
		counts[len(got)] = true
		for i, p := range got {
			hit[p] = true
			if slices.Contains(got[:i], p) {
				t.Fatal("one of them twice")
			}
		}
	}
	if whole < 300 || whole > 700 || len(counts) != 4 || counts[0] || len(hit) != 5 {
		t.Errorf("all of them %d of 1000 times; otherwise so many of five: %v, %d different ones", whole, counts, len(hit))
	}
}
