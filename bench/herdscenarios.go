package main

import (
	"fmt"
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

	// mostOfEach is how much the time for one waiter may grow from the smallest herd to the largest: 1 is a straight
	// line.
	mostOfEach = 1.25
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

// herd is many waiters in a few processes: as many clients, each with connections of its own; or, if they share, one
// client for each process.
func (r *rival) herd(n int, shared bool) scenario {
	name := "herd"
	if shared {
		name = "crowd"
	}
	s := r.scenario(fmt.Sprintf("%s/%d", name, n), workload.Job{
		Kind: workload.Herd, Processes: herdIn, Goroutines: n / herdIn, Limit: 6 * herdLimit,
		Stagger: herdStagger, Shared: shared,
	}, []string{perGrant})
	s.most = engineRounds
	s.wants = []want{{peer: r.own(), unit: unserved, none: true}}
	most := n == slices.Max(r.herds)
	grows := want{
		peer: r.own(), unit: perGrant, from: fmt.Sprintf("%s-%s/%d", r.engine, name, slices.Min(r.herds)),
		atMost: mostOfEach,
	}
	if shared {
		if most {
			s.wants = append(s.wants, grows)
		}
		return s
	}
	if r.floor != "" {
		s.peers = append(s.peers, r.floor)
		grows.base = r.floor // what as many sessions cost that do not lock is not the lock's
	}
	if most {
		s.wants = append(s.wants, want{peer: r.own(), unit: perGrant, base: r.base, atMost: noLoss}, grows)
	}
	return s
}
