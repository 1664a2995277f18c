package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
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

// Leaders are deposed in runs of their own, which take longest and so are made first.
func TestT1_DeposesLeadersInRunsOfTheirOwn(t *testing.T) {
	cells := t1Cells()
	shapeT1(cells, 25*time.Second, rand.New(rand.NewPCG(1, 0)))
	var of []string
	for i, c := range cells {
		if !slices.Contains(c.Faults, target.Depose) {
			continue
		}
		if of = append(of, c.Target.Name); len(c.Faults) != 1 || i != len(of)-1 {
			t.Errorf("run %d of %s is under %v", i, c.Target.Name, c.Faults)
		}
		if c.Names != 1 || c.Hold != target.DeposedHold || c.Lease != c.Target.Leases[target.Depose] ||
			c.Workload != run.Held || c.Duration < leastWithLongLease {
			t.Errorf("the run of %s is %+v", c.Target.Name, *c.Config)
		}
	}
	g, err := target.Find("etcd-3")
	if err != nil {
		t.Fatal(err)
	}
	if why := g.Withheld(target.Depose); why == nil && !slices.Equal(of, []string{"zookeeper-3", "etcd-3"}) {
		t.Errorf("there are runs of %v", of)
	}
}

// Where nothing is done but that answers to what ends something are lost, no loss may be told at all. Holds are short
// there, and many waits end early, so that there is something of each kind to lose.
func TestT1_LosesEndingsInARunOfTheirOwn(t *testing.T) {
	cells := t1Cells()
	shapeT1(cells, 25*time.Second, rand.New(rand.NewPCG(1, 0)))
	var of []string
	for _, c := range cells {
		if !slices.Equal(c.Faults, []target.Fault{target.LoseEnds}) {
			if c.Target.Can(target.LoseEnds) && len(c.Faults) > 8 && !slices.Contains(c.Faults, target.LoseEnds) {
				t.Errorf("%s under %v loses none", c.Target.Name, c.Faults)
			}
			continue
		}
		of = append(of, c.Target.Name)
		if c.Hold > c.Target.Lease/10 || c.Cancel < 0.2 {
			t.Errorf("the run of %s is %+v", c.Target.Name, *c.Config)
		}
	}
	if !slices.Equal(of, []string{"redis"}) {
		t.Errorf("there are runs of %v", of)
	}
}
