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
	peers   []string // that are compared with
	base    string   // of the demands
	alone   float64  // what an uncontended acquisition with its release may cost, of the base's
	handoff float64  // likewise a hand-off
	rate    float64  // likewise how many locks a second processes take at least; 0 if the base's do not take turns
	herds   []int    // numbers of waiters, of which the time for each must not grow
	crowds  bool     // whether as many goroutines that share a few clients are measured too
	floor   string   // a peer that does not lock, against which herds are judged; "" if there is none
	readers string   // that has a read/write lock; "" if none

	why map[string]string // why interlock does not keep what is demanded in a scenario, where it does not
}

// rivals returns those of each engine, in the order of tables.
func rivals() []rival {
	return []rival{
		{
			engine: engined.ZK, peers: []string{"zk.Lock"}, base: "zk.Lock",
			alone: 1, handoff: 1, rate: 0.95, herds: []int{100, 1000},
			why: map[string]string{
				"alone": "" +
					"one round trip less than zk.Lock saves little where loopback takes 50 µs; where the disk was " +
					"slower the ratio was 0.88.",
				"handoff": "" +
					"a waiter that is woken reads the queue before it believes that the lock is its own. Until " +
					"2026-11-24 it took the message itself for the grant, which was unsound, and cost 0.94 to 0.98 " +
					"of zk.Lock's time on this machine, instead of 1.16 to 1.40.",
				"processes/8x1": "" +
					"each turn has the read of a hand-off, and a transaction that zk.Lock does not need: it keeps a " +
					"late copy of the request out.",
				"herd/1000": "" +
					"who is woken reads a queue of a thousand names; zk.Lock does so too.",
			},
		},
		{
			engine: engined.Etcd, peers: []string{"concurrency.Mutex"}, base: "concurrency.Mutex",
			alone: noLoss, handoff: 0.1, rate: 0.95, readers: "recipe.RWMutex", herds: []int{100, 1000},
			why: map[string]string{
				"alone": "" +
					"both wait for the disk for most of it; interlock's transaction also asks for the request's " +
					"tomb, reads the queue from both ends and stores who holds the lock. What else is left is 50 µs " +
					"of the client.",
				"herd/1000": "" +
					"etcd finds keys by name and not by age, so each newcomer makes it go through all places twice. " +
					"concurrency.Mutex grows by 1.67, and serves all of its thousand later.",
			},
		},
		{
			engine: engined.MySQL, peers: []string{"get-lock", "get-lock-token"}, base: "get-lock-token",
			alone: noLoss, handoff: noLoss, rate: 0.95, herds: []int{100, 300, 1000}, crowds: true,
			floor: "tokens-in-turn-my",
			why: map[string]string{
				"alone": "" +
					"one round trip less saves little over loopback, and the client works for 90 µs more. Where the " +
					"disk was slower the ratio was 0.92.",
				"processes/8x1": "" +
					"single rounds differ by more than the two do: 0.52 to 1.79 on another machine. A waiter's " +
					"session also shows that it is alive and watches for breaks, which costs the client 170 µs a " +
					"turn and the server 160 µs.",
				"herd/1000": "" +
					"each release of GET_LOCK walks through the whole queue (14 % of the server's time at 1,000, " +
					"1 % at 100); what else grows is not found.",
			},
		},
		{
			engine: engined.Postgres, peers: []string{"advisory", "advisory-token"},
			base:  "advisory-token",
			alone: noLoss, handoff: noLoss, rate: 0.95, herds: []int{100, 300, 1000}, crowds: true,
			floor: "tokens-in-turn-pg",
			why: map[string]string{
				"processes/8x1": "" +
					"single rounds differ by more than the two do: 0.69, 0.81 and 1.07 in three runs. A wait has " +
					"the server asked after 10 ms who is in the way, so that a caller whose context ends is told " +
					"that the lock is held.",
				"herd/1000": "" +
					"each release walks through the whole queue: ProcLockWakeup is 5 to 8 % of the server's time at " +
					"1,000.",
			},
		},
		{
			engine: engined.Redlock, peers: []string{"redsync-five"}, base: "redsync-five",
			alone: 1.5, handoff: 0.1, // redsync's processes take it again before others have asked
		},
	}
}

// engineTimes is how much longer is measured: alternate turns of several milliseconds need time, and some locks take
// one or two.
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

func (r *rival) scenario(name string, job workload.Job, shows ...[]string) scenario {
	return scenario{
		name: r.engine + "-" + name, job: job, engine: r.engine,
		peers: append([]string{r.own()}, r.peers...), base: r.base, shows: shows, why: r.why[name],
	}
}

func (r *rival) uncontended() scenario {
	s := r.scenario("alone", workload.Job{Kind: workload.Turns},
		[]string{perOp}, []string{roundTrips, clientCPU, serverCPU})
	s.longer = engineTimes
	s.wants = []want{{peer: r.own(), unit: perOp, base: r.base, atMost: r.alone}}
	return s
}

func (r *rival) passed() scenario {
	s := r.scenario("handoff", workload.Job{Kind: workload.Handoff, Processes: 2}, []string{p50})
	s.longer = handoffTimes
	s.wants = []want{{peer: r.own(), unit: p50, base: r.base, atMost: r.handoff}}
	return s
}

// oneProcess is what local passes are for.
func (r *rival) oneProcess(n int) scenario {
	job := workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: n}
	s := r.scenario(fmt.Sprintf("one-process/%d", n), job, []string{rate})
	s.longer = engineTimes
	return s
}

// severalProcesses is where servers are asked by many at once.
func (r *rival) severalProcesses(each int) scenario {
	s := r.scenario(fmt.Sprintf("processes/%dx%d", processes, each), workload.Job{
		Kind: workload.Contend, Processes: processes, Goroutines: each,
	}, []string{rate})
	s.longer = processTimes
	if r.rate > 0 {
		s.wants = []want{{peer: r.own(), unit: rate, base: r.base, atLeast: r.rate}}
	}
	s.wants = append(s.wants, want{peer: r.own(), unit: worstShare, atLeast: 0.9})
	return s
}

// reading is as redis-rw.
func (r *rival) reading() scenario {
	s := r.scenario("rw", sharingJob(peer.Readers), []string{rate})
	s.peers, s.base = []string{r.own(), r.own() + "-rw", r.readers}, r.readers
	s.longer = engineTimes
	return s
}
