package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// cell is one engine under one fault.
type cell struct {
	*run.Config
	fault target.Fault
	rep   *check.Report
	err   error // the run could not be made, or a claim is broken
}

// runT2 tortures every engine under each fault by itself, and writes what each keeps.
func runT2(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("t2", flag.ContinueOnError)
	each := flags.Duration("each", 20*time.Second, "how long each run's faults go on")
	seed := flags.Uint64("seed", 0, "0 draws one")
	beside := flags.Int("beside", 3, "how many runs at once")
	engines := flags.String("engines", "", "only these, separated by commas")
	increments := flags.Int("increments", 0,
		"beside the table: for each engine a run of all faults that it keeps, until so many updates were made behind "+
			"the fence")
	keep := flags.String("keep", "",
		"keep the histories of all runs in this folder, and judge those that are there already instead of making "+
			"them again")
	out := flags.String("o", "", "write the table into this file; by default it is only printed")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	cells, err := t2Cells(*engines)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	for _, c := range cells {
		c.staff(4, 2)
		c.Names, c.Duration, c.Cancel, c.Seed = 3, c.lasts(*each), 0.05, *seed
		if c.Workload == run.Held {
			c.holdForLong(*each)
		}
	}
	if *keep != "" {
		if err := os.MkdirAll(*keep, 0o700); err != nil {
			return err
		}
	}
	cells, broken := fillT2(ctx, cells, filling{*beside, *keep}, *increments, *seed)
	how := fmt.Sprintf("-each %v -seed %d -beside %d", *each, *seed, *beside)
	if *increments > 0 {
		how += fmt.Sprintf(" -increments %d", *increments)
	}
	lacks := vacuity(cells, *engines == "")
	page := guarantees(cells, how, lacks)
	fmt.Println(page)
	if *out != "" {
		if err := os.WriteFile(*out, []byte(page), 0o644); err != nil {
			return err
		}
	}
	if err := errors.Join(broken, ctx.Err()); err != nil {
		return err
	}
	return inconclusive(lacks)
}

// fillT2 fills the cells of the table, and then those that are only in the figures. It returns all of them.
func fillT2(ctx context.Context, table []*cell, how filling, increments int, seed uint64) ([]*cell, error) {
	engines := targetsOf(table)
	broken := fill(ctx, table, how)
	// One at a time, and nothing beside: without a fault no hold may be lost, and these also have a
	// server that is far away.
	longs := longCells(engines, seed)
	broken = errors.Join(broken, fill(ctx, longs, filling{1, how.keep}))
	var many []*cell
	if increments > 0 {
		many = manyCells(engines, increments, seed)
		broken = errors.Join(broken, fill(ctx, many, how))
	}
	return slices.Concat(table, longs, many), broken
}

func t2Cells(engines string) ([]*cell, error) {
	all := target.Targets()
	if engines != "" {
		all = nil
		for name := range strings.SplitSeq(engines, ",") {
			g, err := target.Find(name)
			if err != nil {
				return nil, err
			}
			all = append(all, g)
		}
	}
	var cells []*cell
	for _, g := range all {
		for _, f := range append([]target.Fault{target.None}, g.Faults...) {
			if f == target.Depose {
				cells = append(cells, deposing(g))
				continue
			}
			lease, hold := g.Leases[f], g.Lease/5
			if g.Broken[f] != "" {
				hold = cmp.Or(lease, g.Lease) // long, so that the fault finds somebody inside
			}
			cells = append(cells,
				&cell{fault: f, Config: &run.Config{Target: g, Faults: []target.Fault{f}, Hold: hold, Lease: lease}})
		}
		cells = append(cells,
			&cell{fault: pairs, Config: &run.Config{Target: g, Faults: kept(g), Hold: g.Lease / 5, Pairs: true}})
		if g.Recalls() {
			cells = append(cells,
				&cell{
					fault:  retain,
					Config: &run.Config{Target: g, Faults: kept(g), Hold: g.Lease / 5, Workload: run.Retain},
				})
		}
	}
	return cells, nil
}

// staff gives the run so many processes with so many goroutines each; or all of them in one process, if
// the engine is inside of it.
func (c *cell) staff(processes, goroutines int) {
	if c.Target.Inside {
		processes, goroutines = 1, processes*goroutines
	}
	c.Processes, c.Goroutines = processes, goroutines
}

// leastWithLongLease is how long runs with longer leases go on at least: in them few locks change hands, and each
// fault takes some ten seconds.
const leastWithLongLease = 40 * time.Second

// lasts is how long the cell's run goes on, when others do for each.
func (c *cell) lasts(each time.Duration) time.Duration {
	if c.Lease > 0 {
		return max(each, leastWithLongLease)
	}
	return each
}

// longCells hold locks for long, far from the server and without a fault.
func longCells(targets []*target.Target, seed uint64) []*cell {
	var cells []*cell
	for _, g := range targets {
		if g.Can(target.Slow) {
			cells = append(cells, &cell{fault: long, Config: &run.Config{
				Target: g, Faults: []target.Fault{target.None}, Processes: 4, Goroutines: 2, Names: 3, Long: true,
				Seed: seed,
			}})
		}
	}
	return cells
}

// manyCells are runs of many short holds under all faults that each engine keeps, until enough was counted.
func manyCells(targets []*target.Target, increments int, seed uint64) []*cell {
	var cells []*cell
	for _, g := range targets {
		c := &cell{fault: many, Config: &run.Config{
			Target: g, Faults: kept(g), Names: 64, Hold: time.Microsecond, Cancel: 0.01, Increments: increments,
			Duration: time.Hour, Seed: seed,
		}}
		c.staff(4, 16)
		cells = append(cells, c)
	}
	return cells
}

// pairs is no fault but those that the engine keeps, at random, and one of another client at the same time; retain is
// the workload of that name under those that it keeps. many and long are no faults: they mark those cells, which are in
// the figures and not in the table.
const (
	pairs  = target.Fault("pairs")
	retain = target.Fault("retain")
	many   = target.Fault("many")
	long   = target.Fault("long")
)

// filling is how runs are made: so many at once, and with the histories in which folder, if they are kept.
type filling struct {
	beside int
	keep   string
}

// fill makes the runs.
func fill(ctx context.Context, cells []*cell, how filling) error {
	var mu sync.Mutex // guards errs and the standard output
	var errs []error
	var done sync.WaitGroup
	turns := make(chan struct{}, max(1, how.beside))
	for _, c := range cells {
		turns <- struct{}{}
		done.Go(func() {
			defer func() { <-turns }()
			var out bytes.Buffer
			first := c.Seed
			c.rep, c.err = conclusive(func(try uint64) (*check.Report, error) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				c.Seed = first + try
				return c.made(ctx, &out, how.keep)
			})
			mu.Lock()
			defer mu.Unlock()
			_, _ = out.WriteTo(os.Stdout)
			switch {
			case isMissing(c.err): // what INTERLOCK_REQUIRE lists fails otherwise
				fmt.Printf("  SKIPPED: %v\n", c.err)
			case c.err != nil:
				errs = append(errs, fmt.Errorf("%s under %v: %w", c.Target.Name, c.Faults, c.err))
			}
		})
	}
	done.Wait()
	return errors.Join(errs...)
}
