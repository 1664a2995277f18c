package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

const (
	engineRounds = 3 // at most, of herds: a thousand connections are opened each time

	// herdStagger leaves the time to open a connection for each wait.
	herdStagger = 6 * time.Millisecond

	// noLoss is how much more time than a competitor with the same promises may be taken.
	noLoss = 1.05
)

// herdScenarios are those of an engine on which very many wait at once.
func (r *rival) herdScenarios() []scenario {
	var all []scenario
	for _, shared := range []bool{false, true} {
		for _, n := range r.herds {
			if r.crowds || !shared {
				all = append(all, r.herd(n, shared))
			}
		}
	}
	return all
}

// herd is many waiters in a few processes: as many clients, each with connections of its own; or, if they share, one client
// for each process.
func (r *rival) herd(n int, shared bool) scenario {
	name, who := "herd", fmt.Sprintf("%d clients of %d processes", n, herdIn)
	if shared {
		name, who = "crowd", fmt.Sprintf("%d goroutines of %d processes with one client each", n, herdIn)
	}
	s := r.scenario(fmt.Sprintf("%s/%d", name, n), who+" wait for one key, and each gets it once", workload.Job{
		Kind: workload.Herd, Processes: herdIn, Goroutines: n / herdIn, Limit: 6 * herdLimit,
		Stagger: herdStagger, Shared: shared,
	})
	s.most = engineRounds
	s.wants = []want{{peer: r.own(), of: unserved, none: true, says: r.product + ": " + who + ", not served"}}
	if shared {
		return s
	}
	if r.floor != "" {
		s.peers = append(s.peers, r.floor)
	}
	if n == slices.Max(r.herds) {
		s.wants = append(s.wants, r.drained(who)...)
	}
	return s
}

// drained compares the time until the most of them are served: with who locks, and with what does not, if there is that.
func (r *rival) drained(who string) []want {
	says := fmt.Sprintf("%s: %s, until all are served, against ", r.product, who)
	all := []want{{peer: r.own(), base: r.base, atMost: noLoss, says: says + r.base}}
	if r.floor != "" {
		all = append(all, want{peer: r.own(), base: r.floor, says: says + "as many sessions that do not lock"})
	}
	return all
}

// growth is how much the time for one waiter may grow from the smallest herd to the largest: 1 is a straight line.
const growth = 1.25

// herdWants compares herds of different sizes.
func (r *report) herdWants() [][]string {
	var rows [][]string
	for _, v := range rivals() {
		for _, shared := range []bool{false, true} {
			if row := r.growthOf(&v, shared); row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// growthOf is the row of the herds of an engine, or nil if there are not two of them. What as many sessions cost that do not
// lock is not the lock's.
func (r *report) growthOf(v *rival, shared bool) []string {
	var first, last *measured
	for _, m := range r.measured {
		if m.engine != v.engine || m.job.Kind != workload.Herd || m.job.Shared != shared {
			continue
		}
		if first == nil {
			first = m
		}
		last = m
	}
	if first == last {
		return nil
	}
	grows := func(peer string) float64 {
		return last.eachTook(peer) / first.eachTook(peer)
	}
	who, q, of := "clients", grows(v.own()), ""
	switch {
	case shared:
		who = "goroutines that share clients"
	case v.floor != "":
		floor := grows(v.floor)
		of = fmt.Sprintf(" (%s), against %s (%s)", times(q), v.floor, times(floor))
		q /= floor
	default:
		of = fmt.Sprintf(" (of %s %s)", v.base, times(grows(v.base)))
	}
	return []string{
		fmt.Sprintf("%s: time for each of %d waiting %s, of that for each of %d%s", v.product, last.waiters(), who, first.waiters(), of),
		fmt.Sprintf("at most %.3g", growth), times(q), yes(q <= growth),
	}
}

func (m *measured) waiters() int { return m.job.Processes * m.job.Goroutines }

func (m *measured) perWaiter(r *workload.Result) float64 { return r.Herd.Total / float64(m.waiters()) }

// eachTook is the median of that for a peer; no number if it has not served all within the limit.
func (m *measured) eachTook(peer string) float64 {
	if m.median(peer, unserved) > 0 {
		return math.NaN()
	}
	return m.median(peer, m.perWaiter)
}
