package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/torture/check"
)

// enough is what all runs of t1, or of t2, must have seen together (K12). What holders do that overrun their lease
// on purpose happens without a nemesis as well, so some of it must be the work of faults: of some three minutes
// about 20 refused requests are.
var enough = check.Least{
	HolderBlows: 30, PlainLost: 1, Stale: 5, AnyStale: 100, WaiterBlows: 1, Turns: 5, Wakes: 5, Ends: 1,
}

// staleInT2 is how many of those it must be where t2 has made the runs of all engines, which are ten times as many.
const staleInT2 = 30

// enoughOfEach is what the runs of t2 on one engine must have seen. There faults need not make anybody stale in a few
// short runs: a file is kept by a process that stands still, and by no other. Overruns are the same on each.
var enoughOfEach = check.Least{HolderBlows: 10, AnyLost: 1, AnyStale: 1}

// vacuity says what the runs of t2 lack. All engines together must have seen enough; of some that were chosen it is not
// known which have lines, modes and conditions. And on each engine faults must have hit some holders and the control
// must have lost something, or its column says nothing, however much the others saw.
func vacuity(cells []*cell, allEngines bool) (lacks []string) {
	least := enough
	if !allEngines {
		least.WaiterBlows, least.Turns, least.Wakes, least.Ends = 0, 0, 0, 0
	} else {
		least.Stale = staleInT2
	}
	var all check.Figures
	for _, g := range targetsOf(cells) {
		f, _ := figuresOf(cells, g)
		all.Add(f)
		if f.Grants == 0 {
			continue // it was skipped
		}
		for _, lack := range f.Vacuity(enoughOfEach) {
			lacks = append(lacks, g.Name+": "+lack)
		}
	}
	for _, lack := range all.Vacuity(least) {
		lacks = append(lacks, "all runs together: "+lack)
	}
	return lacks
}

// inconclusive is the error of runs that lack something, and nil if they lack nothing.
func inconclusive(lacks []string) error {
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("%w, so that nothing was broken proves nothing: %s", errVacuous, strings.Join(lacks, "; "))
}

// tries is how often one of many runs is made, at most, if it is inconclusive: in a few seconds there may by chance
// have been too little of something, but hardly three times, each with a seed of its own.
const tries = 3

func conclusive(run func(try uint64) (*check.Report, error)) (rep *check.Report, err error) {
	for try := range uint64(tries) {
		if rep, err = run(try); !errors.Is(err, errVacuous) {
			break
		}
	}
	return rep, err
}
