package main

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/bench/workload"
)

// onDistance begins the names of the scenarios on a Redis that is far away.
const onDistance = "distance"

// distances are what a round trip to the server takes, beside what it takes on this machine: another machine in the rack, another
// building, another city, another country.
var distances = []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond}

const (
	mostTrips        = 2.05 // of an acquisition and its release
	mostHandoffTrips = 1.1  // half out, half back, and a tenth for everything else

	rueidislockPatience = 20 * time.Millisecond

	// judgedFrom is the shortest distance of which something is demanded. Where a round trip takes less, what counts beside it is
	// the time on processors: even the floors need more than the least number of round trips there.
	judgedFrom = 10 * time.Millisecond
)

// distanceScenarios returns those on a server that is far away, in the order of the tables. What a distance shows is how often a
// lock has to ask before it is had, and how often before the next one has it.
func distanceScenarios() []scenario {
	var all []scenario
	for _, far := range distances {
		all = append(all, distantPair(far))
	}
	for _, far := range distances {
		all = append(all, distantHandoff(far))
	}
	for i := range all {
		all[i].redis = true
	}
	return all
}

func distantPair(far time.Duration) scenario {
	return scenario{
		name:   onDistance + "-alone/" + far.String(),
		family: onDistance + "-alone",
		point:  far.String(),
		of:     "distance",
		title:  "Redis far away: one acquisition and its release by one goroutine that nobody disturbs",
		job:    workload.Job{Kind: workload.Turns},
		far:    far,
		longer: longerWhen(far),
		peers:  distantPeers(far, floorAlone, redsync, "bsm-1ms"),
		bases:  []string{floorAlone},
		wants: distantWant(far, want{
			peer: interlockRedis, of: inRoundTrips, atMost: mostTrips,
			says: fmt.Sprintf("one acquisition and its release through %v, in round trips", far),
		}),
	}
}

func distantHandoff(far time.Duration) scenario {
	return scenario{
		name:   onDistance + "-handoff/" + far.String(),
		family: onDistance + "-handoff",
		point:  far.String(),
		of:     "distance",
		title:  "Redis far away: from one process's call of Unlock to the return of Lock in another one, which waited",
		job:    workload.Job{Kind: workload.Handoff, Processes: 2},
		far:    far,
		longer: handoffTimes * longerWhen(far),
		peers:  distantPeers(far, floorHandoff, redsync, "bsm-10ms"),
		bases:  []string{floorHandoff},
		wants: distantWant(far, want{
			peer: interlockRedis, of: handoffInRoundTrips, atMost: mostHandoffTrips,
			says: fmt.Sprintf("hand-off between two processes through %v, p50, in round trips", far),
		}),
	}
}

// distantWant leaves what is nearer to the reader.
func distantWant(far time.Duration, w want) []want {
	if far < judgedFrom {
		w.atMost = 0
	}
	return []want{w}
}

// distantPeers are interlock, those given, and rueidislock where it works. Its default is to try the next server when one has not
// answered within 20 ms, and if there is one server only, it waits for ever then.
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

// inRoundTrips and handoffInRoundTrips are times, counted in round trips through the same way: what a request takes that does nothing, measured right before
// by a program without any library.

func inRoundTrips(r *workload.Result) float64        { return r.PerOp / r.RoundTrip }
func handoffInRoundTrips(r *workload.Result) float64 { return latency(0.5)(r) / r.RoundTrip }
func roundTrip(r *workload.Result) float64           { return r.RoundTrip }
