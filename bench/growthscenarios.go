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

	// mostConnections is for how many waiters each can have a connection of its own: rueidis, through which blpop waits, gives a
	// mebibyte of buffers to each. Where there are more, those who poll by redsync keep its connections busy for longer than its
	// lease, so that holders lose the lock.
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
	for i := range all {
		all[i].redis = true
	}
	return all
}

func growingHolds(n int) scenario {
	s := scenario{
		name:   fmt.Sprintf("%s-holds/%d", onGrowth, n),
		family: onGrowth + "-holds",
		point:  thousands(float64(n)),
		of:     "locks",
		title:  fmt.Sprintf("Redis: different locks held at once by one client, with a lease of %v, which is the default", growthLease),
		job:    workload.Job{Kind: workload.Keep, Locks: n, Lease: growthLease, Renewals: 1, Settle: growthSettle},
		peers:  []string{interlockRedis, "bsm-1ms", rueidislock},
	}
	if n == growthLocks[len(growthLocks)-1] {
		what := s.point + " holds with the default lease: "
		s.wants = []want{
			{peer: interlockRedis, of: kept(ownShare), atMost: mostCPU, says: what + "part of one processor that the client takes"},
			{peer: interlockRedis, of: kept(goroutinesEach), atMost: mostGoroutines, says: what + "goroutines for each"},
			{peer: interlockRedis, of: kept(gone), none: true, says: what + "lost or never taken"},
		}
	}
	return s
}

func growingWaiters(n int) scenario {
	in := min(growthProcesses, n)
	s := scenario{
		name:   fmt.Sprintf("%s-waiters/%d", onGrowth, n),
		family: onGrowth + "-waiters",
		point:  thousands(float64(n)),
		of:     "waiters",
		title: fmt.Sprintf("Redis: goroutines that share %d clients of %d processes at most wait for one key, and each gets it once",
			growthClients, growthProcesses),
		job: workload.Job{
			Kind: workload.Herd, Processes: in, Goroutines: n / in, Shared: true,
			Clients: growthClients / growthProcesses, Limit: growthLimit,
		},
		peers: []string{interlockRedis, interlockQueue, rueidislock},
		wants: []want{
			{peer: interlockRedis, of: unserved, none: true, says: thousands(float64(n)) + " waiting: not served"},
			{peer: interlockQueue, of: unserved, none: true, says: thousands(float64(n)) + " waiting without local passes: not served"},
		},
	}
	if n <= mostConnections {
		s.peers = append(s.peers, redsync, floorHandoff)
		s.bases = []string{floorHandoff}
	}
	if n >= mostConnections {
		s.most = herdRounds
	}
	return s
}

// waiterWants compares the most waiters with few.
func (r *report) waiterWants() [][]string {
	var all []*measured
	for _, m := range r.measured {
		if m.family == onGrowth+"-waiters" && m.waiters() >= growthFew {
			all = append(all, m)
		}
	}
	if len(all) < 2 {
		return nil
	}
	first, last := all[0], all[len(all)-1]
	var rows [][]string
	for _, p := range []string{interlockRedis, interlockQueue} {
		q := last.eachTook(p) / first.eachTook(p)
		rows = append(rows, []string{
			fmt.Sprintf("%s: time for each of %s waiters, of that for each of %s", p, last.point, first.point),
			fmt.Sprintf("at most %.3g", mostGrowth), times(q), yes(q <= mostGrowth),
		})
	}
	return rows
}

func ownShare(k *workload.KeepResult) float64 { return k.CPU }
