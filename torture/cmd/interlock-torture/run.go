package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

func runOne(ctx context.Context, args []string) error {
	c, err := parseRun(args)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	_, err = torture(ctx, os.Stdout, c)
	return err
}

// parseRun is the run that the flags describe.
func parseRun(args []string) (*run.Config, error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	engine := flags.String("engine", "redis", "the engine; see list")
	faults := flags.String("faults", "none",
		"faults, separated by commas; or all: those that the engine can have; or kept: those of them that it keeps")
	workers := flags.String("workers", "4x2", "processes x goroutines of each")
	names := flags.Int("names", 2, "how many locks")
	duration := flags.Duration("duration", 20*time.Second, "how long the faults go on")
	hold := flags.Duration("hold", 50*time.Millisecond, "how long a lock is held, on average")
	lease := flags.Duration("lease", 0,
		"how long leases last; 0 is as the engine's own, see list, which decides how long faults last in any case")
	cancels := flags.Float64("cancel", 0.05, "share of the calls whose context ends at random")
	seed := flags.Uint64("seed", 0, "decides the faults and the choices of the workers; 0 draws one")
	pairs := flags.Bool("pairs", false, "while a fault goes on, another client has one too")
	workload := flags.String("workload", mixed,
		"what the workers do: mixed, or retain: bursts of mutexes that are retained, "+
			"with leases of 5 s unless -lease says otherwise")
	long := flags.Bool("long", false,
		"instead: each goroutine holds a lock of its own for 20 leases, with three tenths of a lease between it and "+
			"the server")
	untimed := flags.Bool("untimed", false,
		"do not judge how late calls return (K8): for machines that are busy with other things")
	dir := flags.String("dir", "", "keep the histories in this folder; by default only those of broken runs are kept")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	c := &run.Config{
		Names: *names, Duration: *duration, Hold: *hold, Lease: *lease, Cancel: *cancels, Seed: *seed, Dir: *dir,
		Pairs: *pairs, Long: *long, Untimed: *untimed,
	}
	if *workload != mixed {
		c.Workload = run.Workload(*workload)
	}
	if _, err := fmt.Sscanf(*workers, "%dx%d", &c.Processes, &c.Goroutines); err != nil {
		return nil, fmt.Errorf("-workers %q is not processes x goroutines, as in 4x2", *workers)
	}
	g, err := target.Find(*engine)
	if err != nil {
		return nil, err
	}
	c.Target = g
	switch *faults {
	case "all":
		c.Faults = slices.DeleteFunc(slices.Clone(g.Faults), func(f target.Fault) bool { return f == target.Depose })
	case "kept":
		c.Faults = kept(g)
	default:
		for f := range strings.SplitSeq(*faults, ",") {
			c.Faults = append(c.Faults, target.Fault(f))
		}
	}
	return c, nil
}

// mixed is the flag for the workload without a name.
const mixed = "mixed"

// command is that which makes a cell's run again, by itself.
func (c *cell) command() string {
	which, more := string(c.fault), ""
	switch {
	case c.Pairs:
		which, more = "kept", " -pairs"
	case c.Workload == run.Held:
		more = fmt.Sprint(" -workload ", c.Workload)
	case c.Workload != "":
		which, more = "kept", fmt.Sprint(" -workload ", c.Workload)
	}
	hold := fmt.Sprint("-hold ", c.Hold)
	if c.Lease > 0 {
		hold += fmt.Sprint(" -lease ", c.Lease)
	}
	return fmt.Sprintf("interlock torture run -engine %s -faults %s%s %s %s -seed %d",
		c.Target.Name, which, more, c.shape(), hold, c.Seed)
}

// shape are the flags that most cells of a table have in common. Runs with longer leases have a longer -duration, and
// engines inside of a process have one process.
func (c *cell) shape() string {
	return fmt.Sprintf("-workers %dx%d -names %d -duration %v", c.Processes, c.Goroutines, c.Names, c.Duration)
}

// torture makes one run, prints what was found, and keeps the folder if the run is broken.
func torture(ctx context.Context, out io.Writer, c *run.Config) (*check.Report, error) {
	if c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.Worker = []string{self, workerWord}
	keep := c.Dir != ""
	if keep {
		err = os.Mkdir(c.Dir, 0o700)
	} else {
		c.Dir, err = os.MkdirTemp("", "interlock-torture-")
	}
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s under %v for %v, %dx%d on %d names, seed %d\n",
		c.Target.Name, c.Faults, c.Duration, c.Processes, c.Goroutines, c.Names, c.Seed)
	if c.Pairs {
		fmt.Fprintln(out, "  two faults at once")
	}
	if c.Workload != "" {
		fmt.Fprintf(out, "  workload %s, leases of %v\n", c.Workload, c.LeaseTime())
	}
	if c.Untimed {
		fmt.Fprintln(out, "  not judged by how late calls return")
	}
	if c.Long {
		fmt.Fprintln(out, "  long holds, far from the server")
	}
	if _, err := run.Do(ctx, c); err != nil {
		if os.Remove(c.Dir) != nil { // it is not empty
			fmt.Fprintln(out, "the histories are in", c.Dir)
		}
		return nil, err
	}
	rep, err := judge(out, c.Dir)
	if (err == nil || errors.Is(err, errVacuous)) && !keep {
		return rep, errors.Join(err, os.RemoveAll(c.Dir))
	}
	fmt.Fprintln(out, "the histories are in", c.Dir)
	return rep, err
}

// judge prints the verdicts on a folder.
func judge(out io.Writer, dir string) (*check.Report, error) {
	rep, err := check.Dir(dir)
	if err != nil {
		return nil, err
	}
	for _, v := range rep.Verdicts {
		fmt.Fprintln(out, " ", v)
	}
	fmt.Fprintln(out, " ", rep.Figures)
	if !rep.OK() {
		return rep, errBroken
	}
	return rep, inconclusive(rep.Inconclusive())
}

func checkAgain(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%w: check needs the folder of a run", errUsage)
	}
	_, err := judge(os.Stdout, args[0])
	return err
}

func list() {
	for _, g := range target.Targets() {
		fmt.Printf("%-10s lease %v, ", g.Name, g.Lease)
		if g.Recalls() {
			fmt.Printf("workloads: %s %s, ", mixed, run.Retain)
		}
		fmt.Print("faults:")
		for _, f := range g.Faults {
			fmt.Printf(" %s", f)
			if g.Broken[f] != "" {
				fmt.Print(" (two holders possible)")
			}
		}
		fmt.Println()
	}
}

// isMissing reports whether the run could not be made because a server is not installed.
func isMissing(err error) bool { return errors.Is(err, servers.ErrMissing) }

// made makes the cell's run. If histories are kept it has a folder of its own there; and if that is of a run
// which has ended, this is judged and not made again, so that an hour of runs can be interrupted, and judged anew
// when a check was mended.
func (c *cell) made(ctx context.Context, out io.Writer, keep string) (*check.Report, error) {
	conf := *c.Config // a run changes it
	if keep == "" {
		return torture(ctx, out, &conf)
	}
	conf.Dir = filepath.Join(keep, fmt.Sprintf("%s-%s-%d", c.Target.Name, c.fault, c.Seed))
	var verdicts bytes.Buffer
	rep, err := judge(&verdicts, conf.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is new, or was interrupted
		if err := os.RemoveAll(conf.Dir); err != nil {
			return nil, err
		}
		return torture(ctx, out, &conf)
	case rep == nil:
		return nil, err
	case !isOf(&rep.About, &conf):
		return nil, fmt.Errorf("%s is of a run with other settings: choose another folder", conf.Dir)
	}
	fmt.Fprintf(out, "%s under %v, seed %d, as it was recorded in %s\n%s",
		c.Target.Name, c.Faults, c.Seed, conf.Dir, &verdicts)
	return rep, err
}

// isOf reports whether a run was made with these settings.
func isOf(about *run.About, c *run.Config) bool {
	want := *c
	want.Engine = c.Target.Name
	if about.Long { // then it has as many names as there are goroutines, and lasts as long as holds do
		want.Names, want.Duration = about.Names, about.Duration
	}
	a, errA := json.Marshal(&about.Config)
	b, errB := json.Marshal(&want)
	return errA == nil && errB == nil && bytes.Equal(a, b) && about.Lease == c.LeaseTime()
}

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
