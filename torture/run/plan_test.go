package run

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/target"
)

// The seed decides which blows there are, how long they last, whom they are aimed at and what they do themselves,
// although one of them draws as often as the machine lets it. Another seed decides otherwise.
func TestPlan_IsTheSame_HoweverOftenABlowDraws(t *testing.T) {
	one, same, other := planner(1), planner(1), planner(2)
	differ := 0
	for number := range uint64(100) {
		p, q, r := one.plan(number), same.plan(number), other.plan(number)
		if draws := [2]uint64{
			p.dice.Uint64(), p.another.Uint64(),
		}; draws != [2]uint64{q.dice.Uint64(), q.another.Uint64()} {
			t.Fatalf("blow %d draws something else", number)
		}
		for range number {
			p.dice.Uint64()
			p.another.Uint64()
		}
		if got, want := decided(p), decided(q); got != want {
			t.Fatalf("blow %d is %+v, and once more %+v", number, got, want)
		}
		if decided(p) != decided(r) {
			differ++
		}
	}
	if differ < 90 {
		t.Errorf("with another seed %d of 100 blows are others", differ)
	}
}

// All that is tortured has its turn, in lengths from half a lease to three.
func TestPlan_HasEachFaultAndEachLength(t *testing.T) {
	n := planner(1)
	faults, names, crew := map[target.Fault]int{}, map[string]int{}, map[int]int{}
	shortest, longest, aimed := time.Hour, time.Duration(0), 0
	for number := range uint64(1000) {
		p := n.plan(number)
		faults[p.fault]++
		names[p.name]++
		crew[p.anybody]++
		shortest, longest = min(shortest, p.lasts), max(longest, p.lasts)
		if p.aimed {
			aimed++
		}
		if p.quiet < 0 || p.quiet >= n.Target.Lease/2 {
			t.Errorf("blow %d is followed by %v", number, p.quiet)
		}
	}
	if len(faults) != 5 || len(names) != 3 || len(crew) != 4 || faults[target.Stop] < faults[target.Kill] {
		t.Errorf("faults %v, names %v, processes %v", faults, names, crew)
	}
	if shortest < n.Target.Lease/2 || shortest > n.Target.Lease*6/10 || longest > 3*n.Target.Lease ||
		longest < n.Target.Lease*29/10 || aimed < 750 || aimed > 900 {
		t.Errorf("from %v to %v, %d of 1000 are aimed", shortest, longest, aimed)
	}
}

// decided is what can be compared of a plan.
func decided(p *plan) plan {
	q := *p
	q.dice, q.another = nil, nil
	return q
}

// planner is a nemesis that can only plan.
func planner(seed uint64) *nemesis {
	return &nemesis{run: &run{
		Config: &Config{
			Seed:   seed,
			Faults: []target.Fault{target.Kill, target.KillWaiter, target.Stop, target.Reset, target.Slices},
			Target: &target.Target{Lease: time.Second},
		},
		names: []string{"a", "b", "c"}, crew: make([]*process, 4),
	}}
}
