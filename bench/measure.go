package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// Bounds of the time before and after the window.
const (
	leastWarm = 2 * time.Millisecond
	mostWarm  = 50 * time.Millisecond
)

// measure runs the rounds of a scenario. In each of them every peer is measured once, one right after the other, so
// that what else the machine does meets all of them. The order differs in each round, because a peer may profit or
// suffer from its predecessor.
func measure(ctx context.Context, sc scenario, s *settings, progress func(round int)) (rounds, error) {
	if sc.measures != nil {
		return sc.measures(ctx, s)
	}
	if sc.far > 0 {
		way, err := distance.Start(ctx, s.redis, sc.far)
		if err != nil {
			return nil, err
		}
		defer way.Close()
		sc.job.Far, sc.job.Arrives = way.Addr, sc.far
	}
	one := sc.peersOneByOne
	if sc.job.Kind == workload.Turns {
		one = sc.peersInTurns
	}
	var all rounds
	for round := range sc.rounds(s) {
		progress(round)
		lines, err := one(ctx, s, round)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
		all = append(all, lines...)
	}
	return all, nil
}

// peersOneByOne runs a round in which each peer has processes of its own.
func (sc *scenario) peersOneByOne(ctx context.Context, s *settings, round int) (all rounds, err error) {
	for _, i := range order(s, round, len(sc.peers)) {
		j := sc.jobOf(s)
		j.Peer = sc.peers[i]
		if sc.served() {
			j.Warm = s.time / 2 // hundreds of connections are made
		}
		r, err := workload.Run(ctx, peer.All(), j)
		if err != nil {
			return nil, err
		}
		all = append(all, line{sc.name, j.Peer, sc.values(&r)})
	}
	return all, nil
}

// peersInTurns runs a round in which one process has all peers, which takes as long as one after the other.
func (sc *scenario) peersInTurns(ctx context.Context, s *settings, round int) (all rounds, err error) {
	j := sc.jobOf(s)
	j.Peers, j.Seed = sc.peers, s.seed+uint64(round)
	r, err := workload.Run(ctx, peer.All(), j)
	for _, name := range sc.peers {
		if t, is := r.Turns[name]; is {
			all = append(all, line{sc.name, name, sc.values(&workload.Result{
				PerOp: t.PerOp, Wait: t.Single, CPU: t.CPU, ServerCPU: t.ServerCPU,
				RoundTrip: r.RoundTrip, RoundTrips: t.RoundTrips,
			})})
		}
	}
	return all, err
}

// jobOf is the scenario's job with what the flags and the servers say.
func (sc *scenario) jobOf(s *settings) workload.Job {
	j := sc.job
	j.Dir, j.Time = s.dir, s.time*time.Duration(max(sc.longer, 1))
	j.Warm = min(max(s.time/10, leastWarm), mostWarm)
	if sc.redis {
		j.Redis = s.redis
	}
	if sc.engine != "" {
		j.Server, j.PIDs = s.servers[sc.engine], s.pids[sc.engine]
	}
	return j
}

// order returns the peers' order in a round, by index.
func order(s *settings, round, peers int) []int {
	return rand.New(rand.NewPCG(s.seed, uint64(round))).Perm(peers)
}

// rounds is one where time is not what is measured: a heap is as large each time.
func (sc *scenario) rounds(s *settings) int {
	if sc.job.Kind == workload.Keep {
		return 1
	}
	if sc.most > 0 {
		return min(sc.most, s.rounds)
	}
	return s.rounds
}
