package main

import (
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

// onDistance begins the names of the scenarios on a Redis that is far away.
const onDistance = "distance"

// distances are what a round trip to the server takes, beside what it takes on this machine: another machine in the
// rack, another building, another city, another country.
var distances = []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}

const (
	mostTrips        = 2.05 // of an acquisition and its release
	mostHandoffTrips = 1.1  // half out, half back, and a tenth for everything else

	rueidislockPatience = 20 * time.Millisecond

	// judgedFrom is the shortest distance of which something is demanded. Where a round trip takes less, what counts
	// beside it is the time on processors: even the floors need more than the least number of round trips there.
	judgedFrom = 10 * time.Millisecond
)

// distanceScenarios returns those on a server that is far away, in the order of the tables. What a distance shows is
// how often a lock has to ask before it is had, and how often before the next one has it.
func distanceScenarios() []scenario {
	var all []scenario
	for _, far := range distances {
		all = append(all, distantPair(far))
	}
	for _, far := range distances {
		all = append(all, distantHandoff(far))
	}
	return needRedis(all)
}

func distantPair(far time.Duration) scenario {
	return scenario{
		name:   onDistance + "-alone/" + far.String(),
		job:    workload.Job{Kind: workload.Turns},
		far:    far,
		longer: longerWhen(far),
		peers:  distantPeers(far, floorAlone, redsync, "bsm-1ms"),
		shows:  [][]string{{inTrips}},
		wants:  distantWant(far, mostTrips),
	}
}

func distantHandoff(far time.Duration) scenario {
	return scenario{
		name:   onDistance + "-handoff/" + far.String(),
		job:    workload.Job{Kind: workload.Handoff, Processes: 2},
		far:    far,
		longer: handoffTimes * longerWhen(far),
		peers:  distantPeers(far, floorHandoff, redsync, "bsm-10ms"),
		shows:  [][]string{{inTrips}},
		wants:  distantWant(far, mostHandoffTrips),
	}
}

// distantWant leaves what is nearer to the reader.
func distantWant(far time.Duration, most float64) []want {
	if far < judgedFrom {
		return nil
	}
	return []want{{peer: interlockRedis, unit: inTrips, atMost: most}}
}

// distantPeers are interlock, those given, and rueidislock where it works. Its default is to try the next server when
// one has not answered within 20 ms, and if there is one server only, it waits for ever then.
func distantPeers(far time.Duration, others ...string) []string {
	peers := append([]string{interlockRedis}, others...)
	if far < rueidislockPatience {
		peers = append(peers, rueidislock)
	}
	return peers
}

// longerWhen makes the time of a measurement enough for some dozens of acquisitions.
func longerWhen(far time.Duration) int {
	switch {
	case far > 10*time.Millisecond:
		return 4
	case far > time.Millisecond:
		return 2
	default:
		return 1
	}
}
