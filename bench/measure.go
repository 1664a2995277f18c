package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
	"github.com/interlock-go/interlock/bench/workload"
)

// measured is what a scenario's rounds have brought: by peer, one result for each round.
type measured struct {
	scenario
	command string // what repeats it alone; "" if only all of them are repeated
	results map[string][]workload.Result
}

// Bounds of the time before and after the window.
const (
	leastWarm = 2 * time.Millisecond
	mostWarm  = 50 * time.Millisecond
)

// measure runs the rounds. In each of them every peer is measured once, one right after the other, so that what else the
// machine does meets all of them. The order is another one in each round, because a peer may profit or suffer from its
// predecessor.
func measure(ctx context.Context, sc scenario, s *settings, progress func(round int)) (*measured, error) {
	m := &measured{scenario: sc, results: map[string][]workload.Result{}}
	if sc.far > 0 {
		way, err := distance.Start(ctx, s.redis, sc.far)
		if err != nil {
			return nil, err
		}
		defer way.Close()
		m.job.Far, m.job.Arrives = way.Addr, sc.far
	}
	for round := range sc.rounds(s) {
		progress(round)
		if sc.job.Kind == workload.Turns {
			if err := m.turns(ctx, s, round); err != nil {
				return nil, fmt.Errorf("round %d: %w", round+1, err)
			}
			continue
		}
		for _, i := range order(s, round, len(sc.peers)) {
			j := m.job
			j.Peer, j.Dir, j.Time = sc.peers[i], s.dir, s.time*time.Duration(max(sc.longer, 1))
			j.Warm = min(max(s.time/10, leastWarm), mostWarm)
			if sc.redis {
				j.Redis = s.redis
				j.Warm = s.time / 2 // hundreds of connections are made
			}
			if sc.engine != "" {
				j.Server, j.PIDs = s.servers[sc.engine], s.pids[sc.engine]
				j.Warm = s.time / 2
			}
			r, err := workload.Run(ctx, peer.All(), j)
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", round+1, err)
			}
			m.results[j.Peer] = append(m.results[j.Peer], r)
		}
	}
	return m, nil
}

// turns runs a round in which one process has all peers, which takes as long as one after the other.
func (m *measured) turns(ctx context.Context, s *settings, round int) error {
	j := m.job
	j.Peers, j.Dir, j.Redis, j.Seed = m.peers, s.dir, s.redis, s.seed+uint64(round)
	j.Server, j.PIDs = s.servers[m.engine], s.pids[m.engine]
	j.Time = s.time * time.Duration(max(m.longer, 1))
	j.Warm = min(max(s.time/10, leastWarm), mostWarm)
	r, err := workload.Run(ctx, peer.All(), j)
	for name, t := range r.Turns {
		m.results[name] = append(m.results[name],
			workload.Result{PerOp: t.PerOp, Wait: t.Single, CPU: t.CPU, ServerCPU: t.ServerCPU, RoundTrip: r.RoundTrip, RoundTrips: t.RoundTrips})
	}
	return err
}

// order returns the peers' order in a round, by index.
func order(s *settings, round, peers int) []int {
	return rand.New(rand.NewPCG(s.seed, uint64(round))).Perm(peers)
}

// rounds is one where time is not what is measured: a heap is as large each time.
func (sc *scenario) rounds(s *settings) int {
	if sc.job.Kind == workload.Held || sc.job.Kind == workload.Keep {
		return 1
	}
	if sc.most > 0 {
		return min(sc.most, s.rounds)
	}
	return s.rounds
}

// each returns one number of each round of a peer.
func (m *measured) each(name string, number func(*workload.Result) float64) []float64 {
	var xs []float64
	for i := range m.results[name] {
		xs = append(xs, number(&m.results[name][i]))
	}
	return xs
}

// value is what peers are compared by: acquisitions a second, or nanoseconds.
func (m *measured) value(r *workload.Result) float64 {
	switch m.job.Kind {
	case workload.Serial, workload.Turns:
		return r.PerOp
	case workload.Handoff:
		return latency(0.5)(r)
	case workload.Herd:
		return r.Herd.Total
	default:
		return r.Rate
	}
}

func (m *measured) median(name string, number func(*workload.Result) float64) float64 {
	return stats.Median(m.each(name, number))
}

func (m *measured) ratio(name, base string) stats.Ratio { return m.ratioOf(name, base, m.value) }

func (m *measured) ratioOf(name, base string, number func(*workload.Result) float64) stats.Ratio {
	return stats.Compare(m.each(name, number), m.each(base, number))
}

// served reports whether there is a server, which costs something too.
func (m *measured) served() bool { return m.redis || m.engine != "" }

// roundTripsCounted reports whether the round trips of a peer were counted. With a server far away they show in the time.
func (m *measured) roundTripsCounted() bool {
	return m.served() && m.far == 0 && m.job.Kind == workload.Turns
}

func roundTrips(r *workload.Result) float64 { return r.RoundTrips }

func clientCPU(r *workload.Result) float64 { return r.CPU }
func serverCPU(r *workload.Result) float64 { return r.ServerCPU }

func jain(r *workload.Result) float64  { return stats.Jain(r.Shares) }
func worst(r *workload.Result) float64 { return stats.Worst(r.Shares) }

// waited returns the wait, in nanoseconds, that a part q of the acquisitions does not exceed.
func waited(q float64) func(*workload.Result) float64 {
	return func(r *workload.Result) float64 { return float64(r.Wait.Quantile(q)) }
}
