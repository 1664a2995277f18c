package main

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// onEngines chooses the scenarios of the engines other than Redis, all of them. Those of one begin with its name.
const onEngines = "engines"

// rival is what interlock is measured against on an engine.
type rival struct {
	engine  string
	product string
	peers   []string // that are compared with
	base    string   // of the demands
	alone   float64  // what an uncontended acquisition with its release may cost, of the base's
	handoff float64  // likewise a hand-off
	rate    float64  // likewise how many locks a second processes take at least; 0 if the base's do not take turns
	herds   []int    // numbers of waiters, of which the time for each must not grow
	crowds  bool     // whether as many goroutines that share a few clients are measured too
	floor   string   // a peer that does not lock, against which herds are judged; "" if there is none
	readers string   // that has a read/write lock; "" if none
}

// rivals returns those of each engine, in the order of tables.
func rivals() []rival {
	return []rival{
		{
			engine: engined.ZK, product: "ZooKeeper", peers: []string{"zk.Lock"}, base: "zk.Lock",
			alone: 1, handoff: 1, rate: 0.95, herds: []int{100, 1000},
		},
		{
			engine: engined.Etcd, product: "etcd", peers: []string{"concurrency.Mutex"}, base: "concurrency.Mutex",
			alone: noLoss, handoff: 0.1, rate: 0.95, readers: "recipe.RWMutex", herds: []int{100, 1000},
		},
		{
			engine: engined.MySQL, product: "MariaDB", peers: []string{"get-lock", "get-lock-token"}, base: "get-lock-token",
			alone: noLoss, handoff: noLoss, rate: 0.95, herds: []int{100, 300, 1000}, crowds: true, floor: "tokens-in-turn-my",
		},
		{
			engine: engined.Postgres, product: "PostgreSQL", peers: []string{"advisory", "advisory-token"}, base: "advisory-token",
			alone: noLoss, handoff: noLoss, rate: 0.95, herds: []int{100, 300, 1000}, crowds: true, floor: "tokens-in-turn-pg",
		},
		{
			engine: engined.Redlock, product: "Redlock, five Redis", peers: []string{"redsync-five"}, base: "redsync-five",
			alone: 1.5, handoff: 0.1, // redsync's processes take it again before others have asked
		},
	}
}

// engineTimes is how much longer is measured: alternate turns of several milliseconds need time, and some locks take one or two.
const engineTimes = 2

// processTimes is the same for several processes: in less time it is luck how disks and schedulers fall.
const processTimes = 5

// engineScenarios returns those on engines other than Redis, in the order of the tables.
func engineScenarios() []scenario {
	var all []scenario
	for _, r := range rivals() {
		all = append(all, r.uncontended(), r.passed())
		for _, n := range append(slices.Clone(fewerGoroutines), goroutines) {
			all = append(all, r.oneProcess(n))
		}
		for _, each := range []int{1, manyEach} {
			all = append(all, r.severalProcesses(each))
		}
		if r.readers != "" {
			all = append(all, r.reading())
		}
		all = append(all, r.herdScenarios()...)
	}
	return all
}

func (r *rival) own() string { return "interlock-" + r.engine }

func (r *rival) scenario(name, title string, job workload.Job) scenario {
	return scenario{
		name: r.engine + "-" + name, title: r.product + ": " + title, job: job, engine: r.engine,
		peers: append([]string{r.own()}, r.peers...), bases: r.peers,
	}
}

func (r *rival) uncontended() scenario {
	s := r.scenario("alone", "one acquisition and its release by one goroutine that nobody disturbs", workload.Job{Kind: workload.Turns})
	s.longer = engineTimes
	s.wants = []want{{
		peer: r.own(), base: r.base, atMost: r.alone,
		says: fmt.Sprintf("%s: time of an uncontended acquisition and release, against %s", r.product, r.base),
	}}
	return s
}

func (r *rival) passed() scenario {
	s := r.scenario("handoff", "from one process's call of Unlock to the return of Lock in another one, which waited",
		workload.Job{Kind: workload.Handoff, Processes: 2})
	s.longer = handoffTimes
	s.wants = []want{{
		peer: r.own(), base: r.base, of: latency(0.5), atMost: r.handoff,
		says: fmt.Sprintf("%s: hand-off between two processes, p50, against %s", r.product, r.base),
	}}
	return s
}

// oneProcess is what local passes are for.
func (r *rival) oneProcess(n int) scenario {
	who := fmt.Sprintf("%d goroutines of one process on one key", n)
	s := r.scenario(fmt.Sprintf("one-process/%d", n), who, workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: n})
	s.longer = engineTimes
	s.wants = []want{{peer: r.own(), base: r.base, says: fmt.Sprintf("%s: %s, against %s", r.product, who, r.base)}}
	return s
}

// severalProcesses is where servers are asked by many at once.
func (r *rival) severalProcesses(each int) scenario {
	who := fmt.Sprintf("%d processes x %d on one key", processes, each)
	s := r.scenario(fmt.Sprintf("processes/%dx%d", processes, each), who, workload.Job{
		Kind: workload.Contend, Processes: processes, Goroutines: each,
	})
	s.longer = processTimes
	s.wants = []want{{
		peer: r.own(), of: worst, atLeast: 0.9, says: fmt.Sprintf("%s: %s, smallest share of a process, of a fair one", r.product, who),
	}}
	if r.rate > 0 {
		s.wants = append(s.wants, want{
			peer: r.own(), base: r.base, atLeast: r.rate, says: fmt.Sprintf("%s: %s, locks a second, against %s", r.product, who, r.base),
		})
	}
	return s
}

// reading is as redis-rw.
func (r *rival) reading() scenario {
	who := fmt.Sprintf("%d processes x %d on one key, 95 %% reads, %v inside", sharers, sharing/sharers, sharedHold)
	s := r.scenario("rw", who, workload.Job{
		Kind: workload.Contend, Processes: sharers, Goroutines: sharing / sharers, Hold: sharedHold, Sharing: peer.Readers,
	})
	own := r.own() + "-rw"
	s.peers, s.bases = []string{own, r.own(), r.readers}, []string{r.own(), r.readers}
	s.longer = engineTimes
	s.wants = []want{
		{peer: own, base: r.readers, says: fmt.Sprintf("%s: %s, against %s", r.product, who, r.readers)},
		{peer: own, base: r.own(), says: fmt.Sprintf("%s: %s, RWMutex against Mutex", r.product, who)},
	}
	return s
}
