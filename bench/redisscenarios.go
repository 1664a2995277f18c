package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// onRedis begins the names of the scenarios that need a server.
const onRedis = "redis"

// The peers that are compared with, and interlock.
const (
	interlockRedis = "interlock-redis"
	interlockRW    = "interlock-redis-rw"
	interlockSem   = "interlock-redis-sem"
	floorAlone     = "set-nx"
	floorHandoff   = "blpop"

	// The least that the same costs with a token, and with an owner and a lease: the server's share of a ratio.
	fencedAlone   = "set-nx-fenced"
	fencedHandoff = "blpop-fenced"

	rueidislock = "rueidislock"
	redsync     = "redsync"
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

	// What a held lock may cost.
	mostBytes      = 600
	mostGoroutines = 0.01 // for each of very many locks: a handful for the whole client

	mostScript = 35 * time.Microsecond // of the server, for one turn of those who want one lock
)

// redisScenarios returns those that need a Redis, in the order of the tables.
func redisScenarios() []scenario {
	all := []scenario{
		redisPair(false), redisPair(true), redisKeys(),
		redisOneProcess(fewerGoroutines[0]), redisOneProcess(fewerGoroutines[1]), redisOneProcess(goroutines),
		redisProcesses(1), redisProcesses(manyEach), redisHandoff(), redisHerd(),
		redisHolds(), redisReaders(), redisPermits(),
	}
	for i := range all {
		all[i].peers = slices.Insert(all[i].peers, 0, interlockRedis)
	}
	return needRedis(all)
}

// redisPair measures twice: where the system puts client and server, which is mostly on one processor, and each on one
// of its own, where they have to wake each other up, as across a network.
func redisPair(apart bool) scenario {
	name := "redis-pair/anywhere"
	if apart {
		name = "redis-pair/apart"
	}
	return scenario{
		name:  name,
		job:   workload.Job{Kind: workload.Turns, Apart: apart},
		peers: []string{floorAlone, "set-nx-pool", fencedAlone, redsync, "bsm-1ms", rueidislock},
		base:  floorAlone,
		shows: [][]string{{perOp}, {p99, roundTrips}, {clientCPU, serverCPU}},
		wants: []want{
			{peer: interlockRedis, unit: perOp, base: floorAlone, atMost: 1.1},
			{peer: interlockRedis, unit: perOp, base: fencedAlone, atMost: 1.05},
		},
		why: "both ask twice; what is more is the server's. By instructions outside of the kernel a pair of set-nx " +
			"costs it 34,000, of set-nx-fenced, the least that mints a token, 74,000, and of interlock 111,000.",
	}
}

func redisKeys() scenario {
	return scenario{
		name:  "redis-keys",
		job:   workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: ownLocks, Distinct: true},
		peers: []string{floorAlone, "set-nx-pool", fencedAlone, redsync, "bsm-1ms", rueidislock},
		base:  floorAlone,
		shows: [][]string{{rate}, {p99, serverCPU}},
		wants: []want{
			{peer: interlockRedis, unit: rate, base: floorAlone, atLeast: 0.85},
			{peer: interlockRedis, unit: rate, base: redsync, atLeast: 3},
		},
		why: "requests travel together, so that the server is what all wait for, and each lock costs it more than " +
			"with set-nx (see redis-pair).",
	}
}

func redisOneProcess(n int) scenario {
	s := scenario{
		name:  fmt.Sprintf("redis-one-process/%d", n),
		job:   workload.Job{Kind: workload.Contend, Processes: 1, Goroutines: n, Every: sampling},
		peers: []string{floorHandoff, rueidislock, redsync, "redsync-1ms", "bsm-1ms", "bsm-10ms"},
		base:  floorHandoff,
		shows: contended,
	}
	if n == goroutines {
		s.wants = []want{
			{peer: interlockRedis, unit: rate, base: floorHandoff, atLeast: 20},
			{peer: interlockRedis, unit: rate, base: rueidislock, atLeast: 50},
			{peer: interlockRedis, unit: p99, atMost: 5e6},
			{peer: interlockRedis, unit: jainIndex, atLeast: 0.99},
			{peer: interlockRedis, unit: commands, atMost: 0.05},
		}
	}
	return s
}

func redisProcesses(each int) scenario {
	s := scenario{
		name:  fmt.Sprintf("redis-processes/%dx%d", processes, each),
		job:   workload.Job{Kind: workload.Contend, Processes: processes, Goroutines: each},
		peers: []string{floorHandoff, fencedHandoff, rueidislock, redsync, "redsync-1ms", "bsm-1ms", "bsm-10ms"},
		base:  floorHandoff,
		shows: contended,
		wants: []want{
			{peer: interlockRedis, unit: rate, base: floorHandoff, atLeast: 20},
			{peer: interlockRedis, unit: worstShare, atLeast: 0.9},
		},
	}
	if each == 1 {
		s.shows = append(slices.Clone(contended), []string{scriptTime})
		s.wants = []want{
			{peer: interlockRedis, unit: rate, base: floorHandoff, atLeast: 0.9},
			{peer: interlockRedis, unit: rate, base: fencedHandoff, atLeast: 0.9},
			{peer: interlockRedis, unit: scriptTime, atMost: float64(mostScript)},
			{peer: interlockRedis, unit: commands, atMost: 2.1},
		}
		s.why = "each turn is a message to the server and one to the next in line, as with BLPOP; between them the " +
			"server moves a place in a queue, a lease and a token (260,000 instructions) instead of one element of a " +
			"list (27,000). blpop-fenced has owner, lease and token too, but nothing is renewed, and the lock is " +
			"gone with its holder."
	}
	return s
}

func redisHandoff() scenario {
	return scenario{
		name:   "redis-handoff",
		job:    workload.Job{Kind: workload.Handoff, Processes: 2, Quiet: quietFor},
		longer: handoffTimes,
		peers:  []string{floorHandoff, fencedHandoff, rueidislock, redsync, "redsync-1ms", "bsm-1ms", "bsm-10ms"},
		base:   floorHandoff,
		shows:  [][]string{{p50}, {p99}, {waitingCommands}},
		wants: []want{
			{peer: interlockRedis, unit: p50, base: floorHandoff, atMost: 1.25},
			{peer: interlockRedis, unit: p50, base: fencedHandoff, atMost: 1.1},
			{peer: interlockRedis, unit: p99, base: floorHandoff, atMost: 1.5},
		},
		why: "as many messages as with BLPOP, and more work of the server between them (see redis-processes/8x1).",
	}
}

func redisHerd() scenario {
	return scenario{
		name:  "redis-herd",
		job:   workload.Job{Kind: workload.Herd, Processes: herdIn, Goroutines: herdOf / herdIn, Limit: herdLimit},
		most:  herdRounds,
		peers: []string{floorHandoff, fencedHandoff, rueidislock, redsync, "bsm-1ms", "bsm-10ms"},
		base:  floorHandoff,
		shows: [][]string{{perHerd}, {commandsAGrant, unserved}},
		wants: []want{
			{peer: interlockRedis, unit: perHerd, base: floorHandoff, atMost: 1.2},
			{peer: interlockRedis, unit: perHerd, base: fencedHandoff, atMost: 1.2},
			{peer: interlockRedis, unit: commandsAGrant, atMost: 2.1},
			{peer: interlockRedis, unit: unserved, none: true},
		},
		why: "the server never rests here, so its work for each turn (see redis-processes/8x1) is all that counts: " +
			"1.07 of BLPOP's time on a slower host, 1.65 on a faster one.",
	}
}

func redisHolds() scenario {
	return scenario{
		name:  "redis-holds",
		job:   workload.Job{Kind: workload.Keep, Locks: holds, Lease: holdLease, Renewals: holdFor},
		peers: []string{redsync, "bsm-1ms", rueidislock, "rueidislock-loop"},
		shows: [][]string{
			{commandsASecond}, {bytesHeld, goroutinesHeld}, {clientShare, serverShare}, {lostHolds, missing},
		},
		why: "measured while a connection kept what it had written until the next time: 10,000 renewals that travel " +
			"together, 75 bytes for each. It no longer does; a hold has 540 bytes.",
		wants: []want{
			{peer: interlockRedis, unit: commandsASecond, atMost: mostCommands},
			{peer: interlockRedis, unit: bytesHeld, atMost: mostBytes},
			{peer: interlockRedis, unit: goroutinesHeld, atMost: mostGoroutines},
			{peer: interlockRedis, unit: lostHolds, none: true},
			{peer: interlockRedis, unit: missing, none: true},
		},
	}
}

// redisReaders and redisPermits are about what may be shared: the mutex, which lets in one at a time, is what both are
// compared with. No Go library on Redis that could be measured here has either.
func redisReaders() scenario {
	return scenario{
		name:  "redis-rw",
		job:   sharingJob(peer.Readers),
		peers: []string{interlockRW},
		base:  interlockRedis,
		shows: contended,
		wants: []want{
			{peer: interlockRW, unit: rate, base: interlockRedis, atLeast: 2},
			{peer: interlockRW, unit: worstShare, atLeast: 0.8},
		},
	}
}

func redisPermits() scenario {
	return scenario{
		name:  "redis-sem",
		job:   sharingJob(peer.Several),
		peers: []string{interlockSem, "blpop-8"},
		base:  interlockRedis,
		shows: contended,
		wants: []want{
			{peer: interlockSem, unit: rate, base: interlockRedis, atLeast: 3},
			{peer: interlockSem, unit: worstShare, atLeast: 0.8},
		},
	}
}

// sharingJob has goroutines of a few processes want to be inside together.
func sharingJob(who peer.Sharing) workload.Job {
	return workload.Job{
		Kind: workload.Contend, Processes: sharers, Goroutines: sharing / sharers, Hold: sharedHold, Sharing: who,
	}
}
