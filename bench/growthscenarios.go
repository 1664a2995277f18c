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
	growthLocks   = []int{1, 100, 1_000, 10_000, 100_000, 1_000_000}
	growthWaiters = []int{1, 10, 100, 1_000, 10_000}
)

const (
	// growthLease is the default: what renewals cost depends on it.
	growthLease  = 30 * time.Second
	growthSettle = 15 * time.Second // by then all are renewed at their usual times

	// What 100,000 may cost their client of one processor, and what a million may.
	mostCPU        = 0.05
	millionCPU     = 0.3
	million        = 1_000_000
	bytesOfMillion = 400 // for each of them, in the client

	growthClients   = 100 // that waiters share
	growthProcesses = 2   // that the clients are of
	growthLimit     = 20 * time.Second

	// mostConnections is for how many waiters each can have a connection of its own: rueidis, through which blpop
	// waits, gives a mebibyte of buffers to each. Where there are more, those who poll by redsync keep its connections
	// busy for longer than its lease, so that holders lose the lock.
	mostConnections = 1_000

	// growthGrants is how many grants are measured at least, where fewer wait: each asks again at once when it had the
	// lock. Ten who take it once are over in a millisecond, and have asked before the time begins, as most of ten
	// thousand who share clients have not.
	growthGrants = 1_000

	// mostGrowth is how much more each of the most waiters may cost than each of growthFew; one alone waits for nobody.
	mostGrowth = 1.3
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
		shows: [][]string{{commandsASecond, bytesHeld, serverBytes}, {clientShare, serverShare}},
	}
	switch n {
	case million:
		s.peers = []string{interlockRedis} // the others' ticks alone would keep the server busy
		s.wants = append(wantsOfHolds(millionCPU), want{peer: interlockRedis, unit: bytesHeld, atMost: bytesOfMillion})
		s.why = "a hold keeps a lease with its owner (176 B), a grant (144), a mutex (32), an id (24), a place " +
			"in the index of grants (50) and in the schedule (20); in redislock an entry with its index (75) and two " +
			"callbacks (32); the measurement keeps 16."
	case million / 10:
		s.wants = wantsOfHolds(mostCPU)
	}
	return s
}

func wantsOfHolds(cpu float64) []want {
	return []want{
		{peer: interlockRedis, unit: clientShare, atMost: cpu},
		{peer: interlockRedis, unit: goroutinesHeld, atMost: mostGoroutines},
		{peer: interlockRedis, unit: lostHolds, none: true},
		{peer: interlockRedis, unit: missing, none: true},
	}
}

func growingWaiters(n int) scenario {
	in := min(growthProcesses, n)
	s := scenario{
		name: waitersOf(n),
		job: workload.Job{
			Kind: workload.Herd, Processes: in, Goroutines: n / in, Shared: true,
			Clients: growthClients / growthProcesses, Limit: growthLimit, Times: max(growthGrants/n, 1),
		},
		peers: []string{interlockRedis, interlockQueue, rueidislock},
		shows: [][]string{{perGrant}},
	}
	for _, p := range []string{interlockRedis, interlockQueue} {
		s.wants = append(s.wants, want{peer: p, unit: unserved, none: true})
		if n == growthWaiters[len(growthWaiters)-1] {
			s.wants = append(s.wants, want{peer: p, unit: perGrant, from: waitersOf(growthFew), atMost: mostGrowth})
			s.why = "measured before a requeue had a quick answer in the server, which took half of the time, " +
				"and with ten who took the lock once and were over in milliseconds."
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
