package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

// scenario is one table: a job that several peers do in turn.
type scenario struct {
	name  string
	title string
	job   workload.Job
	peers []string
	bases []string // the peers that the others are compared with
	wants []want

	redis  bool   // it needs a Redis
	engine string // whose server it needs, if not Redis; "" if none
	// Scenarios of one family that follow each other make one table. Its first column, with this head, says the point of each.
	family, point, of string

	far    time.Duration // how much longer a round trip to the server takes than it does on this machine
	longer int           // measured for so many times as long as the flag says; 0 is 1
	most   int           // rounds at most; 0 is as many as the flag says
}

// want is what interlock demands of itself: a ratio of one peer to another. Without a bound it is for the reader to judge.
type want struct {
	peer, base string
	atLeast    float64 // 0 if there is no bound on this side
	atMost     float64 // likewise
	says       string

	// of is the number that is compared; nil is the one that the table is about. Without a base it is bounded by itself.
	of   func(*workload.Result) float64
	none bool // it must be zero
}

const (
	goroutines = 256
	processes  = 8

	// sampling keeps the clock from being what the fastest peers are measured by; it is a prime, so that it does not fall in
	// step with local passes.
	sampling = 17
)

// fewerGoroutines are further numbers of them, with nothing done inside.
var fewerGoroutines = []int{2, 16}

// scenarios returns all of them, in the order of the tables.
func scenarios() []scenario {
	all := []scenario{oneProcess(goroutines, 0), oneProcess(goroutines, 20*time.Microsecond)}
	for _, n := range fewerGoroutines {
		all = append(all, oneProcess(n, 0))
	}
	for _, hold := range []time.Duration{0, 20 * time.Microsecond, 200 * time.Microsecond} {
		all = append(all, manyProcesses(hold))
	}
	return append(all, alone(), held())
}

// oneProcess is what local passes are for.
func oneProcess(n int, hold time.Duration) scenario {
	s := scenario{
		name:  fmt.Sprintf("goroutines/hold=%v", hold),
		title: fmt.Sprintf("%d goroutines of one process, one lock, %s inside", n, inside(hold)),
		job:   workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: n, Hold: hold},
		peers: []string{"interlock-file", "flock", "flock-kept", "interlock-mem", "sync.Mutex"},
		bases: []string{"flock", "sync.Mutex"},
	}
	if n < goroutines {
		s.name = fmt.Sprintf("goroutines/%d", n)
		s.job.Every = sampling
		return s
	}
	if hold == 0 {
		s.job.Every = sampling
		s.wants = []want{{
			peer: "interlock-file", base: "flock",
			says: fmt.Sprintf("%d goroutines of one process, against bare flock", goroutines),
		}}
	}
	return s
}

func manyProcesses(hold time.Duration) scenario {
	return scenario{
		name:  fmt.Sprintf("processes/hold=%v", hold),
		title: fmt.Sprintf("%d processes with one goroutine each, one file, %s inside", processes, inside(hold)),
		job:   workload.Job{Kind: workload.Contend, Processes: processes, Goroutines: 1, Hold: hold},
		peers: []string{"interlock-file", "filelock-driver", "flock", "flock-kept"},
		bases: []string{"flock", "flock-kept"},
		wants: []want{{
			peer: "interlock-file", base: "flock", atLeast: 0.8,
			says: fmt.Sprintf("%d processes, %s inside, against bare flock", processes, inside(hold)),
		}},
	}
}

func alone() scenario {
	return scenario{
		name:  "uncontended",
		title: "One goroutine that nobody disturbs: one acquisition and its release",
		job:   workload.Job{Kind: workload.Serial},
		peers: []string{"interlock-file", "filelock-driver", "flock", "flock-kept", "interlock-mem", "sync.Mutex"},
		bases: []string{"flock"},
		wants: []want{{
			peer: "interlock-file", base: "flock", atMost: 3,
			says: "time of an uncontended acquisition and release, against bare flock",
		}},
	}
}

func held() scenario {
	const locks, lease = 10_000, 3 * time.Second
	return scenario{
		name:  "held",
		title: fmt.Sprintf("%d different locks held at once by one client, with a lease of %v, each renewed at least 4 times", locks, lease),
		job:   workload.Job{Kind: workload.Held, Locks: locks, Lease: lease, Renewals: 4},
		peers: []string{workload.EngineMem, workload.EngineNone},
	}
}

// inside says what is done under the lock.
func inside(hold time.Duration) string {
	if hold == 0 {
		return "nothing done"
	}
	return fmt.Sprintf("%v of busy work", hold)
}

// choose returns the scenarios whose name starts with prefix.
func choose(all []scenario, prefix string) []scenario {
	var chosen []scenario
	for _, s := range all {
		if strings.HasPrefix(s.name, prefix) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}
