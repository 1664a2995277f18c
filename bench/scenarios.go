package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

// scenario is a job that several peers do in turn, and some rows of a table.
type scenario struct {
	name  string
	job   workload.Job
	peers []string   // interlock's own first
	base  string     // the peer that the others are compared with; "" if none
	shows [][]string // the units of its rows
	wants []want
	why   string // why interlock does not keep all of them, where it does not

	redis    bool                                                   // it needs a Redis
	engine   string                                                 // whose server it needs, if not Redis; "" if none
	measures func(ctx context.Context, s *settings) (rounds, error) // in place of job, if it is not nil

	far    time.Duration // how much longer a round trip to the server takes than it does on this machine
	longer int           // measured for so many times as long as the flag says; 0 is 1
	most   int           // rounds at most; 0 is as many as the flag says
}

// served reports whether there is a server, which costs something too.
func (sc *scenario) served() bool { return sc.redis || sc.engine != "" }

// own is the peer that is meant where none is named.
func (sc *scenario) own() string { return sc.peers[0] }

func (sc *scenario) waiters() int { return sc.job.Processes * sc.job.Goroutines }

// family is what stands before the point of a scenario that is measured at several.
func (sc *scenario) family() string {
	family, _, _ := strings.Cut(sc.name, "/")
	return family
}

const (
	goroutines = 256
	processes  = 8

	// sampling keeps the clock from being what the fastest peers are measured by; it is a prime, so that it does not
	// fall in step with local passes.
	sampling = 17
)

// fewerGoroutines are further numbers of them.
var fewerGoroutines = []int{2, 16}

// contended are the rows of many who want one lock.
var contended = [][]string{{rate}, {p99, worstShare}}

// fileScenarios are those that need no server.
func fileScenarios() []scenario {
	all := []scenario{alone()}
	for _, n := range fewerGoroutines {
		all = append(all, oneProcess(n, 0))
	}
	all = append(all, oneProcess(goroutines, 0), oneProcess(goroutines, 20*time.Microsecond))
	for _, hold := range []time.Duration{0, 20 * time.Microsecond, 200 * time.Microsecond} {
		all = append(all, manyProcesses(hold))
	}
	return all
}

// oneProcess is what local passes are for.
func oneProcess(n int, hold time.Duration) scenario {
	s := scenario{
		name:  fmt.Sprintf("goroutines/%d", n),
		job:   workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: n, Hold: hold, Every: sampling},
		peers: []string{"interlock-file", "flock", "flock-kept", "interlock-mem", "sync.Mutex"},
		base:  "flock",
		shows: contended,
	}
	if hold > 0 {
		s.name += fmt.Sprintf("-busy-%v", hold)
		s.job.Every = 0
	}
	return s
}

func manyProcesses(hold time.Duration) scenario {
	return scenario{
		name:  fmt.Sprintf("processes/hold=%v", hold),
		job:   workload.Job{Kind: workload.Contend, Processes: processes, Goroutines: 1, Hold: hold},
		peers: []string{"interlock-file", "filelock-driver", "flock", "flock-kept"},
		base:  "flock",
		shows: contended,
		wants: []want{{peer: "interlock-file", unit: rate, base: "flock", atLeast: 0.8}},
		why: "bare flock hardly ever changes hands, so its figure is that of one process alone; interlock hands over " +
			"after a millisecond and writes a token each time.",
	}
}

func alone() scenario {
	return scenario{
		name:  "uncontended",
		job:   workload.Job{Kind: workload.Serial},
		peers: []string{"interlock-file", "filelock-driver", "flock", "flock-kept", "interlock-mem", "sync.Mutex"},
		base:  "flock",
		shows: [][]string{{perOp}},
		wants: []want{{peer: "interlock-file", unit: perOp, base: "flock", atMost: 3}},
		why: "interlock writes a token before the lock counts as held, and checks that the file is still the one " +
			"at the path.",
	}
}

// needRedis says that scenarios need one.
func needRedis(all []scenario) []scenario {
	for i := range all {
		all[i].redis = true
	}
	return all
}

// allScenarios returns those of all tables.
func allScenarios() (all []scenario) {
	for _, r := range runs {
		all = append(all, r.scenarios()...)
	}
	return all
}

// choose returns the scenarios whose name starts with prefix.
func choose(all []scenario, prefix string) []scenario {
	return slices.DeleteFunc(slices.Clone(all), func(sc scenario) bool { return !strings.HasPrefix(sc.name, prefix) })
}
