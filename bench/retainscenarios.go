package main

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
	"golang.org/x/perf/benchfmt"
)

// onRetain begins the names of the scenarios in which clients keep locks after Unlock until others ask.
const onRetain = "redis-retain"

const (
	interlockRetain   = "interlock-redis-retain"
	interlockRetained = "interlock-redis-retained"

	// What retention is for, and what it may cost others.
	mostRetainedPair = 3 * time.Microsecond
	mostRecall       = 1.5 // of a hand-off: it is a message more
	leastInTurn      = 1 / 1.1
	mostFreed        = 2500 * time.Millisecond // the engine's lease is 2 s then

	// mostNotRetained is how many of the locks need not have been retained until the end: a grant that comes late,
	// after a stall, may bring one token, which is used up with the hold.
	mostNotRetained = holds / 100

	killed = 5 // processes in a round, at different moments
)

func retainScenarios() []scenario {
	return needRedis([]scenario{retainPair(), retainInTurn(), retainRecall(), retainHolds(), retainKilled()})
}

func retainPair() scenario {
	return scenario{
		name:  onRetain + "/pair",
		job:   workload.Job{Kind: workload.Turns},
		peers: []string{interlockRetain, interlockRedis},
		base:  interlockRedis,
		shows: [][]string{{perOp, p99, roundTrips}},
		wants: []want{
			{peer: interlockRetain, unit: perOp, atMost: float64(mostRetainedPair)},
			{peer: interlockRetain, unit: roundTrips, none: true},
		},
		why: "a renewal of what is retained may fall into the time.",
	}
}

// retainInTurn is what retention is not for: no process gets the lock twice in a row.
func retainInTurn() scenario {
	s := redisProcesses(1)
	s.name, s.shows = onRetain+"/8x1", [][]string{{rate, p99, worstShare}}
	s.peers, s.base = []string{interlockRetain, interlockRedis}, interlockRedis
	s.wants = []want{{peer: interlockRetain, unit: rate, base: interlockRedis, atLeast: leastInTurn}}
	s.why = "who takes turns recalls a lock now and then, until its client no longer retains it."
	return s
}

func retainRecall() scenario {
	return scenario{
		name:   onRetain + "/recall",
		job:    workload.Job{Kind: workload.Recall, Processes: 2},
		longer: handoffTimes,
		peers:  []string{interlockRetain, interlockRedis},
		base:   interlockRedis,
		shows:  [][]string{{p50, p99}},
		wants:  []want{{peer: interlockRetain, unit: p50, base: interlockRedis, atMost: mostRecall}},
		why: "four messages follow each other: the call of Lock, the server's word to the client that retains the " +
			"lock, its release, and the grant. A hand-off counts from Unlock and has the last two.",
	}
}

func retainHolds() scenario {
	s := redisHolds()
	s.name, s.shows = onRetain+"/holds", [][]string{{commandsASecond, bytesHeld, lostHolds}}
	s.peers = []string{interlockRetained, interlockRedis}
	s.wants = []want{
		{peer: interlockRetained, unit: commandsASecond, atMost: mostCommands},
		{peer: interlockRetained, unit: bytesHeld, atMost: mostBytes},
		{peer: interlockRetained, unit: lostHolds, atMost: mostNotRetained},
		{peer: interlockRetained, unit: missing, none: true},
	}
	s.why = "a retained lock has a lease of 2 s and is renewed each second, by each of ten clients in messages of " +
		"its own that are not full; a hold itself has more than 600 bytes here, and a retained one has an entry " +
		"besides."
	return s
}

func retainKilled() scenario {
	s := scenario{
		name:  onRetain + "/killed",
		peers: []string{interlockRetain},
		shows: [][]string{{freed}},
		wants: []want{{peer: interlockRetain, unit: freed, atMost: float64(mostFreed)}},
		why:   "the engine's lease is 2 s; who waits asks when it may be over.",
	}
	s.measures = func(ctx context.Context, set *settings) (all rounds, err error) {
		for range set.rounds {
			d, err := compare.Retained(ctx, peer.URL(engined.Redis, set.redis), killed)
			if err != nil {
				return nil, err
			}
			all = append(all, line{s.name, interlockRetain, []benchfmt.Value{of(float64(d), freed)}})
		}
		return all, nil
	}
	return s
}
