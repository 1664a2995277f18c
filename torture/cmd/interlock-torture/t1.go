package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// enough is what T1 must have seen over all of its runs.
var enough = check.Least{HolderBlows: 30, PlainLost: 1, Stale: 100}

// runT1 tortures every engine under faults that are mixed, for a few seconds each.
func runT1(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("t1", flag.ContinueOnError)
	each := flags.Duration("each", 25*time.Second, "how long each run's faults go on")
	seed := flags.Uint64("seed", 0, "0 draws one")
	beside := flags.Int("beside", 3, "how many runs at once: they wait for most of the time")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	fmt.Printf("seed %d\n", *seed)
	runs := t1Runs()
	for _, r := range runs {
		r.Processes, r.Goroutines, r.Names, r.Duration, r.Hold, r.Cancel = 4, 2, 3, *each, r.Target.Lease/5, 0.05
		r.Seed = *seed
	}
	return tortureAll(ctx, runs, *beside)
}

// tortureAll makes several runs, some at once, and prints each when it is over.
func tortureAll(ctx context.Context, runs []*run.Config, beside int) error {
	var mu sync.Mutex // guards all, errs and the standard output
	var all check.Figures
	var errs []error
	var done sync.WaitGroup
	turns := make(chan struct{}, max(1, beside))
	for _, r := range runs {
		turns <- struct{}{}
		done.Go(func() {
			defer func() { <-turns }()
			var out bytes.Buffer
			rep, err := torture(ctx, &out, r)
			mu.Lock()
			defer mu.Unlock()
			_, _ = out.WriteTo(os.Stdout)
			switch {
			case isMissing(err) && os.Getenv("INTERLOCK_REQUIRE") == "":
				fmt.Printf("  SKIPPED: %v\n", err)
			case err != nil:
				errs = append(errs, fmt.Errorf("%s under %v: %w", r.Target.Name, r.Faults, err))
			}
			if rep != nil {
				all.Add(rep.Figures)
			}
		})
	}
	done.Wait()
	fmt.Println("\nall runs:", all)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if missing := all.Vacuity(enough); len(missing) > 0 {
		return fmt.Errorf("%w: %v", errVacuous, missing)
	}
	return nil
}

// t1Runs are the runs: for each engine what must be kept, together; what breaks exclusion has a run of its own, so that it
// excuses nothing else.
func t1Runs() []*run.Config {
	var runs []*run.Config
	for _, g := range target.Targets() {
		var kept []target.Fault
		for _, f := range g.Faults {
			if g.Broken[f] == "" {
				kept = append(kept, f)
			}
		}
		runs = append(runs, &run.Config{Target: g, Faults: kept})
	}
	return runs
}
