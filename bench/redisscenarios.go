package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
	"github.com/interlock-go/interlock/bench/workload"
)

// onRedis begins the names of the scenarios that need a server.
const onRedis = "redis"

// The peers that are compared with, and interlock, which is left out of a build that does not know it.
const (
	interlockRedis = "interlock-redis"
	interlockRW    = "interlock-redis-rw"
	interlockSem   = "interlock-redis-sem"
	floorAlone     = "set-nx"
	floorHandoff   = "blpop"
	rueidislock    = "rueidislock"
	redsync        = "redsync"
)

const (
	ownLocks     = 64   // goroutines with a lock each
	manyEach     = 16   // goroutines of each of many processes
	herdOf       = 1000 // clients that wait
	herdIn       = 4    // processes
	holds        = 10_000
	holdLease    = 3 * time.Second
	holdFor      = 2  // leases
	mostCommands = 50 // a second, for all of them
	herdLimit    = 10 * time.Second
	herdRounds   = 3 // at most: with some peers everybody waits until the limit
	quietFor     = 500 * time.Millisecond
	sharing      = 64 // goroutines that want to be inside together
	sharers      = 4  // processes that they are of
	sharedHold   = time.Millisecond
	handoffTimes = 4 // a hand-off is measured for so many times as long: there are few in a second
)

// redisScenarios returns those that need a server, in the order of the tables.
func redisScenarios() []scenario {
	all := []scenario{
		redisPair(false), redisPair(true), redisKeys(),
		redisOneProcess(fewerGoroutines[0]), redisOneProcess(fewerGoroutines[1]), redisOneProcess(goroutines),
		redisProcesses(1), redisProcesses(manyEach), redisHandoff(), redisHerd(),
		redisHolds(), redisReaders(), redisPermits(),
	}
	for i := range all {
		all[i].redis = true
		if !peer.Known(interlockRedis) {
			all[i].wants = nil
			continue
		}
		all[i].peers = slices.Insert(all[i].peers, 0, interlockRedis)
	}
	return all
}

// redisPair measures twice: where the system puts client and server, which is mostly on one processor, and each on one of
// its own, where they have to wake each other up, as across a network.
func redisPair(apart bool) scenario {
	name, where := "redis-pair/anywhere", "client and server where the system puts them"
	if apart {
		name, where = "redis-pair/apart", "client and server on one processor each"
	}
	return scenario{
		name:  name,
		title: "Redis: one acquisition and its release by one goroutine that nobody disturbs, " + where,
		job:   workload.Job{Kind: workload.Turns, Apart: apart},
		peers: []string{floorAlone, "set-nx-pool", "set-nx-fenced", redsync, "bsm-1ms", rueidislock},
		bases: []string{floorAlone},
		wants: []want{{
			peer: interlockRedis, base: floorAlone, atMost: 1.10,
			says: "time of an uncontended acquisition and release, " + where + ", against SET NX by hand",
		}},
	}
}

func redisKeys() scenario {
	return scenario{
		name:  "redis-keys",
		title: fmt.Sprintf("Redis: %d goroutines of one process, each with a lock of its own", ownLocks),
		job:   workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: ownLocks, Distinct: true},
		peers: []string{floorAlone, "set-nx-pool", "set-nx-fenced", redsync, "bsm-1ms", rueidislock},
		bases: []string{floorAlone, redsync},
		wants: []want{
			{
				peer: interlockRedis, base: floorAlone, atLeast: 0.85,
				says: fmt.Sprintf("%d goroutines with a lock each, against SET NX by hand", ownLocks),
			},
			{
				peer: interlockRedis, base: redsync, atLeast: 3,
				says: fmt.Sprintf("%d goroutines with a lock each, against redsync", ownLocks),
			},
		},
	}
}

func redisOneProcess(n int) scenario {
	who := fmt.Sprintf("%d goroutines of one process on one key", n)
	s := scenario{
		name:  fmt.Sprintf("redis-one-process/%d", n),
		title: "Redis: " + who,
		job:   workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: n, Every: sampling},
		peers: []string{floorHandoff, rueidislock, redsync, "redsync-1ms", "bsm-1ms", "bsm-10ms"},
		bases: []string{floorHandoff, rueidislock},
	}
	if n == goroutines {
		s.wants = []want{
			{peer: interlockRedis, base: floorHandoff, atLeast: 20, says: who + ", against BLPOP"},
			{peer: interlockRedis, base: rueidislock, atLeast: 50, says: who + ", against rueidislock"},
			{peer: interlockRedis, of: milliseconds(waited(0.99)), atMost: 5, says: who + ": milliseconds waited, p99"},
			{peer: interlockRedis, of: jain, atLeast: 0.99, says: who + ": Jain index of the goroutines' shares"},
			{peer: interlockRedis, of: commands, atMost: 0.05, says: who + ": commands for each acquisition"},
		}
	}
	return s
}

func redisProcesses(each int) scenario {
	who := fmt.Sprintf("%d processes x %d on one key", processes, each)
	s := scenario{
		name:  fmt.Sprintf("redis-processes/%dx%d", processes, each),
		title: fmt.Sprintf("Redis: %d processes on one key, goroutines in each: %d", processes, each),
		job:   workload.Job{Kind: workload.Contend, Processes: processes, Goroutines: each},
		peers: []string{floorHandoff, "blpop-fenced", rueidislock, redsync, "redsync-1ms", "bsm-1ms", "bsm-10ms"},
		bases: []string{floorHandoff},
	}
	if each == 1 {
		s.wants = []want{
			{peer: interlockRedis, base: floorHandoff, atLeast: 0.9, says: who + ", against BLPOP"},
			{peer: interlockRedis, of: commands, atMost: 2.1, says: who + ": commands for each acquisition"},
		}
		return s
	}
	s.wants = []want{
		{peer: interlockRedis, base: floorHandoff, atLeast: 20, says: who + ", against BLPOP"},
		{peer: interlockRedis, of: worst, atLeast: 0.9, says: who + ": smallest share of a process, of a fair one"},
	}
	return s
}

func redisHandoff() scenario {
	return scenario{
		name:   "redis-handoff",
		title:  "Redis: from one process's call of Unlock to the return of Lock in another one, which waited",
		job:    workload.Job{Kind: workload.Handoff, Processes: 2, Quiet: quietFor},
		longer: handoffTimes,
		peers:  []string{floorHandoff, "blpop-fenced", rueidislock, redsync, "redsync-1ms", "bsm-1ms", "bsm-10ms"},
		bases:  []string{floorHandoff},
		wants: []want{
			{
				peer: interlockRedis, base: floorHandoff, of: latency(0.5), atMost: 1.25,
				says: "hand-off between two processes, p50, against BLPOP",
			},
			{
				peer: interlockRedis, base: floorHandoff, of: latency(0.99), atMost: 1.5,
				says: "hand-off between two processes, p99, against BLPOP",
			},
		},
	}
}

func redisHerd() scenario {
	who := fmt.Sprintf("%d waiting clients: ", herdOf)
	return scenario{
		name:  "redis-herd",
		title: fmt.Sprintf("Redis: %d clients of %d processes wait for one key, and each gets it once", herdOf, herdIn),
		job:   workload.Job{Kind: workload.Herd, Processes: herdIn, Goroutines: herdOf / herdIn, Limit: herdLimit},
		most:  herdRounds,
		peers: []string{floorHandoff, "blpop-fenced", rueidislock, redsync, "bsm-1ms", "bsm-10ms"},
		bases: []string{floorHandoff},
		wants: []want{
			{peer: interlockRedis, base: floorHandoff, atMost: 1.2, says: who + "time until all are served, against BLPOP"},
			{peer: interlockRedis, of: perGrant, atMost: 2.1, says: who + "commands for each grant"},
			{peer: interlockRedis, of: unserved, none: true, says: who + "not served"},
		},
	}
}

func redisHolds() scenario {
	what := fmt.Sprintf("%d holds with a lease of %v: ", holds, holdLease)
	return scenario{
		name:  "redis-holds",
		title: fmt.Sprintf("Redis: %d locks held at once by one client, with a lease of %v", holds, holdLease),
		job:   workload.Job{Kind: workload.Keep, Locks: holds, Lease: holdLease, Renewals: holdFor},
		peers: []string{redsync, "bsm-1ms", rueidislock, "rueidislock-loop"},
		wants: []want{
			{peer: interlockRedis, of: kept(sentASecond), atMost: mostCommands, says: what + "commands a second"},
			{peer: interlockRedis, of: kept(bytesEach), atMost: mostBytes, says: what + "bytes for each"},
			{peer: interlockRedis, of: kept(goroutinesEach), atMost: mostGoroutines, says: what + "goroutines for each"},
			{peer: interlockRedis, of: kept(gone), none: true, says: what + "lost or never taken"},
		},
	}
}

// redisReaders and redisPermits are about what may be shared: the mutex, which lets in one at a time, is what both are
// compared with. No Go library on Redis that could be measured here has either.
func redisReaders() scenario {
	who := fmt.Sprintf("%d processes x %d on one key, 95 %% reads, %v inside", sharers, sharing/sharers, sharedHold)
	return scenario{
		name:  "redis-rw",
		title: "Redis: " + who,
		job: workload.Job{
			Kind: workload.Contend, Processes: sharers, Goroutines: sharing / sharers, Hold: sharedHold, Sharing: peer.Readers,
		},
		peers: []string{interlockRW},
		bases: []string{interlockRedis},
		wants: []want{
			{peer: interlockRW, base: interlockRedis, atLeast: 2, says: who + ": RWMutex against Mutex"},
			{peer: interlockRW, of: worst, atLeast: 0.8, says: who + ": smallest share of a process, of a fair one"},
		},
	}
}

func redisPermits() scenario {
	who := fmt.Sprintf("%d processes x %d on one key, %d may be inside, for %v", sharers, sharing/sharers, peer.Permits, sharedHold)
	return scenario{
		name:  "redis-sem",
		title: "Redis: " + who,
		job: workload.Job{
			Kind: workload.Contend, Processes: sharers, Goroutines: sharing / sharers, Hold: sharedHold, Sharing: peer.Several,
		},
		peers: []string{interlockSem, "blpop-8"},
		bases: []string{interlockRedis, "blpop-8"},
		wants: []want{
			{peer: interlockSem, base: interlockRedis, atLeast: 3, says: who + ": Semaphore against Mutex"},
			{peer: interlockSem, base: "blpop-8", says: who + ": Semaphore against BLPOP on a list of permits"},
			{peer: interlockSem, of: worst, atLeast: 0.8, says: who + ": smallest share of a process, of a fair one"},
		},
	}
}

// What numbers of a result are called.

func commands(r *workload.Result) float64 { return r.Commands }
func perGrant(r *workload.Result) float64 { return r.Herd.Commands }
func unserved(r *workload.Result) float64 { return float64(r.Herd.Unserved) }

func sentASecond(k *workload.KeepResult) float64    { return k.Commands }
func bytesEach(k *workload.KeepResult) float64      { return k.Bytes }
func goroutinesEach(k *workload.KeepResult) float64 { return k.Goroutines }
func gone(k *workload.KeepResult) float64           { return float64(k.Lost + k.Missing) }

func latency(q float64) func(*workload.Result) float64 {
	return func(r *workload.Result) float64 { return stats.Quantile(r.Handoff.Latencies, q) }
}

func kept(number func(*workload.KeepResult) float64) func(*workload.Result) float64 {
	return func(r *workload.Result) float64 { return number(r.Keep) }
}

func milliseconds(of func(*workload.Result) float64) func(*workload.Result) float64 {
	return func(r *workload.Result) float64 { return of(r) / 1e6 }
}
