package main

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Each run of T1 draws faults of its own, or all engines would lack the same ones; the same seed makes the same runs.
func TestT1_DrawsForEachRunAnew(t *testing.T) {
	seeds := func(seed uint64) (all []uint64) {
		dice := rand.New(rand.NewPCG(seed, 0))
		cells := t1Cells()
		more := others(cells, 6)
		shapeT1(cells, time.Second, dice)
		shapeT1(more, time.Second, dice)
		for _, c := range append(cells, more...) {
			all = append(all, c.Seed)
		}
		return all
	}
	first, again := seeds(1), seeds(1)
	drawn := map[uint64]bool{}
	for i, seed := range first {
		if drawn[seed] {
			t.Errorf("run %d has the seed of another", i)
		}
		drawn[seed] = true
		if again[i] != seed {
			t.Errorf("run %d has seed %d, and once more %d", i, seed, again[i])
		}
	}
}
