package sim

import (
	"flag"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds = flag.Int("sim.seeds", defaultSeeds, "how many runs the simulation makes")
	only  = flag.Uint64("sim.seed", 0, "replay the run of this seed; with -v its log is printed")
	hunt  = flag.Uint64("sim.hunt", 1, "which of the rows of seeds: the second begins where the first has ended")
	stop  = flag.String("sim.stop", "", "make no more runs after one in which this checker is red")
	lossy = flag.Bool("sim.lossy", false, "let nothing happen but that single messages are lost and repeated")
)

// shortSeeds are enough with -short to meet most mistakes; too few to say that everything has happened.
const shortSeeds = 25

// usual is the run that the simulation makes of each seed.
var usual = config{faults: true, trouble: 30 * time.Second}

// happens lists what must have happened in the runs of the simulation together, or they prove nothing.
var happens = []string{
	// What the network and the nemesis did.
	"lost request", "lost reply", "repeated request", "reordered request", "partitioned request", "partitioned reply",
	"stalled request", "frozen request", "frozen reply", "frozen worker", "harm to a holder", "harm: crash",
	"harm: re-open", "harm: pause", "harm: stall", "harm: storm", "harm: mud", "harm: two-way partition",
	"harm: one-way partition, requests", "harm: one-way partition, replies", "crash at the end", "broken lock",
	// How holds were lost.
	"lost: unconfirmed", "lost: expired", "lost: broken", "told of a loss at work", "renewal of what was lost",
	// What was tried again, and undone.
	"gave up asking", "heartbeat", "release without an answer", "renewal without an answer", "refused late copy",
	"undo", "undone grant", "unlock without an answer", "write without an answer",
	// What the workers managed to do.
	"lock: done", "lock: held", "lock: unavailable", "lock: closed", "trylock: done", "trylock: held", "unlock: done",
	"unlock: lost", "unlock: released", "unlock with an ended context", "re-entry: done", "extension",
	"named owner", "local pass", "requeue", "renewal", "batch of renewals", "break that was confirmed",
	// What would have been lost without the fence, and was. The second is the control: it shows that the resources were
	// in danger at all.
	"fenced update", "refused by the fence", "unfenced update lost",
}

func TestSimulation(t *testing.T) {
	if *only != 0 {
		r := simulate(t, *only, usual)
		t.Logf("the log of seed %d, hash %x\n%s", *only, r.hash, strings.Join(r.log, "\n"))
		if len(r.violations) > 0 {
			t.Error(r)
		}
		return
	}
	conf := usual
	if *lossy {
		conf = config{lossy: true, trouble: usual.trouble}
	}
	runs := *seeds
	if testing.Short() {
		runs = min(runs, shortSeeds)
	}
	var all tally
	var found atomic.Bool
	var lasted atomic.Int64
	t.Run("Seed", func(t *testing.T) { // returns after its parallel subtests
		for i := range uint64(runs) {
			seed := (*hunt-1)*uint64(runs) + i + 1
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if found.Load() {
					return
				}
				r := simulate(t, seed, conf)
				all.take(r.counts)
				lasted.Add(int64(r.lasted))
				if len(r.violations) > 0 {
					t.Error(r)
				}
				if r.red[checker(*stop)] > 0 {
					found.Store(true)
				}
			})
		}
	})
	t.Logf("%d runs, %v simulated; what happened:%v", runs, time.Duration(lasted.Load()).Round(time.Second), &all)
	if runs < allSeeds || *lossy {
		return // too few to expect everything
	}
	for _, what := range happens {
		if all.by[what] == 0 {
			t.Errorf("%q has not happened in %d runs: they prove nothing about it", what, runs)
		}
	}
}

func TestSimulation_WithoutFaults_LosesNothing(t *testing.T) {
	quiet(t, config{trouble: 30 * time.Second}, "renewal", "local pass", "fenced update", "lost: expired",
		"named owner")
}

func TestSimulation_WithLossesOfSingleMessages_LosesNoLock(t *testing.T) {
	quiet(t, config{lossy: true, trouble: 30 * time.Second},
		"lost request", "lost reply", "repeated request", "renewal without an answer", "release without an answer")
}

// quiet makes some runs in which no hold may be lost, and nothing may happen twice, although what is named has
// happened.
func quiet(t *testing.T, conf config, happened ...string) {
	t.Helper()
	var all tally
	for seed := range quietSeeds {
		r := simulate(t, seed+1, conf)
		all.take(r.counts)
		if len(r.violations) > 0 {
			t.Error(r)
		}
	}
	never := []string{
		"lost: unconfirmed", "lost: broken", "lost: taken", "unfenced update lost", "refused by the fence",
	}
	for _, what := range never {
		if n := all.by[what]; n > 0 {
			t.Errorf("%d times %q", n, what)
		}
	}
	for _, what := range happened {
		if all.by[what] == 0 {
			t.Errorf("%q has not happened: the runs prove nothing about it", what)
		}
	}
	t.Logf("what happened:%v", &all)
}

func TestReplay_TheSameSeed_GivesTheSameLog(t *testing.T) {
	runs := uint64(20)
	if testing.Short() {
		runs = 5
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			first, again := simulate(t, seed+1, usual), simulate(t, seed+1, usual)
			if first.hash == again.hash {
				return
			}
			for i := range first.log {
				if i >= len(again.log) || first.log[i] != again.log[i] {
					t.Fatalf("the logs differ in line %d of %d, first:\n%s\nagain:\n%s",
						i, len(first.log), around(first.log, i), around(again.log, i))
				}
			}
			t.Fatalf("the second run goes on after line %d", len(first.log))
		})
	}
}

// around shows a log near line i.
func around(log []string, i int) string {
	from, to := min(max(0, i-3), len(log)), min(i+4, len(log))
	return strings.Join(log[from:to], "\n")
}
