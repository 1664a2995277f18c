package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// runT1 tortures every engine under faults that are mixed, for a few seconds each.
func runT1(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("t1", flag.ContinueOnError)
	each := flags.Duration("each", 25*time.Second, "how long each run's faults go on")
	seed := flags.Uint64("seed", 0, "0 draws one")
	beside := flags.Int("beside", 8, "how many runs at once: they wait for most of the time")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	fmt.Printf("seed %d\n", *seed)
	cells := t1Cells()
	var all check.Figures
	dice := rand.New(rand.NewPCG(*seed, 0))
	err := fillT1(ctx, cells, *each, dice, *beside, &all)
	missing := all.Vacuity(enough)
	for n := 0; n < mostMore && err == nil && len(missing) > 0; n++ {
		fmt.Printf("\nsome runs more, because that was not enough: %v\n", missing)
		err = fillT1(ctx, others(cells, *beside), *each, dice, *beside, &all)
		missing = all.Vacuity(enough)
	}
	fmt.Println("\nall runs:", all)
	if err != nil {
		return err
	}
	return inconclusive(missing)
}

// mostMore is how often T1 makes some runs more while it has not seen enough: on a busy machine fewer
// faults have room in a run.
const mostMore = 2

// others are runs of the first cells once more, of as many as are made at once.
func others(cells []*cell, beside int) (more []*cell) {
	for _, c := range cells[:min(max(1, beside), len(cells))] {
		more = append(more,
			&cell{Config: &run.Config{
				Target: c.Target, Faults: c.Faults, Long: c.Long, Workload: c.Workload, Lease: c.Lease,
			}})
	}
	return more
}

// fillT1 makes the runs, and adds what they were worth to all.
func fillT1(
	ctx context.Context, cells []*cell, each time.Duration, dice *rand.Rand, beside int, all *check.Figures,
) error {
	shapeT1(cells, each, dice)
	err := fill(ctx, cells, filling{beside: beside})
	for _, c := range cells {
		if c.rep != nil {
			all.Add(c.rep.Figures)
		}
	}
	return err
}

// shapeT1 says how each run goes. Each has a seed of its own: with one for all, each engine would get the same faults
// in the same order, and the same ones would be missing everywhere.
func shapeT1(cells []*cell, each time.Duration, dice *rand.Rand) {
	for _, c := range cells {
		c.staff(4, 2)
		c.Names, c.Duration, c.Hold, c.Cancel, c.Seed = 3, each, c.Target.Lease/5, 0.05, dice.Uint64()
		switch {
		case c.Long:
			c.Cancel = 0
		case slices.Equal(c.Faults, []target.Fault{target.LoseEnds}):
			// so that there are many conversions, and withdrawals
			c.Hold, c.Cancel = c.Target.Lease/20, 0.3
		case c.Workload == run.Held:
			c.holdForLong(each)
		}
	}
}

// t1Cells are the runs: for each engine what must be kept, together. What breaks exclusion has a run of its own, so
// that it excuses nothing else; a fence keeps its promise there too. One engine with leases stands for all of these.
// The databases have runs too, because there the end of a connection is enough.
func t1Cells() []*cell {
	var cells, long, longest []*cell
	for _, g := range target.Targets() {
		if g.OnlyT2 {
			continue
		}
		if slices.Contains(feasible(g), target.Depose) {
			longest = append(longest, deposing(g))
		}
		for _, f := range g.Faults {
			if why := g.Withheld(f); why != nil {
				fmt.Printf("SKIPPED: %s on %s: %v\n", f, g.Name, why)
			}
		}
		cells = append(cells, &cell{Config: &run.Config{Target: g, Faults: kept(g)}})
		if g.Name == "redis" || g.Name == "mariadb" || g.Name == "postgres" {
			cells = append(cells, &cell{Config: &run.Config{Target: g, Faults: breaking(g)}})
		}
		// nothing else happens there, so that no loss may be told at all; and it has everything that can be ended
		if g.Name == "redis" {
			cells = append(cells, &cell{Config: &run.Config{Target: g, Faults: []target.Fault{target.LoseEnds}}})
		}
		// the other engines that retain have the rules of this one, or have no faults on the way to them
		if g.Name == "redis" {
			cells = append(cells, &cell{Config: &run.Config{Target: g, Faults: kept(g), Workload: run.Retain}})
		}
		// has everything; and only without a fault is it known who must be woken, and who is next
		if g.Name == "redis" {
			// when nobody starves any more
			long = append(long, &cell{Config: &run.Config{Target: g, Faults: []target.Fault{target.None}}})
		}
		// a proxy before its one server; t2 has the time for those with several, and has nothing beside the one that
		// waits for its disk: other runs use that too, and leases are short
		if g.Can(target.Slow) && g.Can(target.ServerKill) && g.Name != "redis-aof" {
			long = append(long, &cell{Config: &run.Config{Target: g, Faults: []target.Fault{target.None}, Long: true}})
		}
	}
	return slices.Concat(longest, cells, long) // beside those that take the longest all others are made
}

// deposing is a run in which leaders are deposed, for which holds have to last longer than for anything else.
func deposing(g *target.Target) *cell {
	return &cell{fault: target.Depose, Config: &run.Config{
		Target: g, Faults: []target.Fault{target.Depose}, Workload: run.Held, Lease: g.Leases[target.Depose],
	}}
}

// holdForLong says how a run goes in which holds last for long: one lock, which one process after the other has.
func (c *cell) holdForLong(each time.Duration) {
	c.staff(3, 1)
	c.Names, c.Duration, c.Hold, c.Cancel = 1, c.lasts(each), target.DeposedHold, 0
}

// kept are the faults under which the engine keeps its locks apart, as far as they can be done on this machine and go
// with others: what deposes leaders takes runs of its own.
func kept(g *target.Target) []target.Fault {
	return slices.DeleteFunc(feasible(g), func(f target.Fault) bool { return g.Broken[f] != "" || f == target.Depose })
}

// breaking are the others, but for jumps of the clock: if a server forgets its tokens when its clock was
// set back, they cannot grow.
func breaking(g *target.Target) []target.Fault {
	return slices.DeleteFunc(feasible(g), func(f target.Fault) bool { return g.Broken[f] == "" || f == target.Clock })
}

func feasible(g *target.Target) []target.Fault {
	return slices.DeleteFunc(slices.Clone(g.Faults), func(f target.Fault) bool { return g.Withheld(f) != nil })
}
