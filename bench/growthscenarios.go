package main

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

// onGrowth begins the names of the scenarios that are about numbers of locks and of waiters.
const onGrowth = "growth"

// interlockQueue is interlock where every hand-over is the server's.
const interlockQueue = "interlock-redis-queue"

// The steps of growth.
var (
	growthLocks   = []int{1, 100, 1_000, 10_000, 100_000}
	growthWaiters = []int{1, 10, 100, 1_000, 10_000}
)

const (
	// growthLease is the default: what renewals cost depends on it.
	growthLease  = 30 * time.Second
	growthSettle = 15 * time.Second // by then all are renewed at their usual times
	mostCPU      = 0.05             // of one processor, for all of them

	growthClients   = 100 // that waiters share
	growthProcesses = 2   // that the clients are of
	growthLimit     = 20 * time.Second

	// mostConnections is for how many waiters each can have a connection of its own: rueidis, through which blpop
	// waits, gives a mebibyte of buffers to each. Where there are more, those who poll by redsync keep its connections
	// busy for longer than its lease, so that holders lose the lock.
	mostConnections = 1_000

	// mostGrowth is how much more each of the most waiters may cost than each of growthFew; one alone waits for nobody.
	mostGrowth = 1.5
	growthFew  = 10
)

// growthScenarios returns them in the order of the tables.
func growthScenarios() []scenario {
	var all []scenario
	for _, n := range growthLocks {
		all = append(all, growingHolds(n))
	}
	for _, n := range growthWaiters {
		all = append(all, growingWaiters(n))
	}
	return needRedis(all)
}

func growingHolds(n int) scenario {
	s := scenario{
		name:  fmt.Sprintf("%s-holds/%d", onGrowth, n),
		job:   workload.Job{Kind: workload.Keep, Locks: n, Lease: growthLease, Renewals: 1, Settle: growthSettle},
		peers: []string{interlockRedis, "bsm-1ms", rueidislock},
		shows: [][]string{{commandsASecond, bytesHeld}, {clientShare, serverShare}},
	}
	if n == growthLocks[len(growthLocks)-1] {
		s.wants = []want{
			{peer: interlockRedis, unit: clientShare, atMost: mostCPU},
			{peer: interlockRedis, unit: goroutinesHeld, atMost: mostGoroutines},
			{peer: interlockRedis, unit: lostHolds, none: true},
			{peer: interlockRedis, unit: missing, none: true},
		}
	}
	return s
}

func growingWaiters(n int) scenario {
	in := min(growthProcesses, n)
	s := scenario{
		name: waitersOf(n),
		job: workload.Job{
			Kind: workload.Herd, Processes: in, Goroutines: n / in, Shared: true,
			Clients: growthClients / growthProcesses, Limit: growthLimit,
		},
		peers: []string{interlockRedis, interlockQueue, rueidislock},
		shows: [][]string{{perGrant}},
	}
	for _, p := range []string{interlockRedis, interlockQueue} {
		s.wants = append(s.wants, want{peer: p, unit: unserved, none: true})
		if n == growthWaiters[len(growthWaiters)-1] {
			s.wants = append(s.wants, want{peer: p, unit: perGrant, from: waitersOf(growthFew), atMost: mostGrowth})
			s.why = "ten take some milliseconds, so that the ratio was 0.8, 1.4, 1.7 and 2.2 in four runs; in one process, " +
				"on a faster host, each of ten took 0.41 ms and each of 10,000 0.34."
		}
	}
	if n <= mostConnections {
		s.peers = append(s.peers, redsync, floorHandoff)
		s.base = floorHandoff
	}
	if n >= mostConnections {
		s.most = herdRounds
	}
	return s
}

func waitersOf(n int) string { return fmt.Sprintf("%s-waiters/%d", onGrowth, n) }
