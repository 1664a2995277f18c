package main

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/bench/crowds"
	"golang.org/x/perf/benchfmt"
)

// onCrowds begins the names of the scenarios in which thousands share, watch or wait for a lock.
const onCrowds = "crowds"

// Units of crowds.
const (
	failed       = "failed"
	allIn        = "all-in-ns"
	longestRun   = "script-ns"
	bystanderP99 = "another-p99-ns"
	beyond       = "beyond-cpu-share"
)

// silence is as many connections that say nothing.
const silence = "silence"

// The bounds on what those who share a lock do to the server and to others.
const (
	maxScript  = 5 * time.Millisecond
	maxPairP99 = 20 * time.Millisecond
)

func crowdScenarios() (all []scenario) {
	for _, c := range crowds.All(1000) {
		all = append(all, crowdScenario(c))
	}
	return all
}

func crowdScenario(c crowds.Crowd) scenario {
	sc := scenario{name: onCrowds + "-" + c.Name, peers: []string{interlockRedis}}
	sc.measures = func(ctx context.Context, _ *settings) (rounds, error) {
		got, err := c.Measure(ctx, crowds.Usual)
		return sc.lines(c.Idle, &got), err
	}
	if c.Idle {
		sc.shows = [][]string{{serverShare}}
		sc.wants = []want{{peer: interlockRedis, unit: beyond, atMost: c.Most}}
		sc.peers = append(sc.peers, silence)
		sc.why = "each client looks, or says that it lives, some 80 to 400 commands a second in all; what one " +
			"costs the server differs by half from run to run."
		return sc
	}
	sc.shows = [][]string{{allIn}}
	sc.wants = []want{
		{peer: interlockRedis, unit: longestRun, atMost: float64(maxScript)},
		{peer: interlockRedis, unit: bystanderP99, atMost: float64(maxPairP99)},
		{peer: interlockRedis, unit: lostHolds, none: true},
		{peer: interlockRedis, unit: failed, none: true},
	}
	sc.why = "it is the longest of thousands of runs: a host that stops for a moment adds to it."
	return sc
}

// lines are a round of a crowd, and of silence beside those who are idle.
func (sc *scenario) lines(idle bool, got *crowds.Result) rounds {
	others := []benchfmt.Value{
		of(float64(got.LongestRun), longestRun), of(float64(got.PairP99), bystanderP99),
		of(float64(got.PairLongest), "another-longest-ns"),
	}
	if idle {
		own := []benchfmt.Value{of(got.Share, serverShare), of(got.Share-got.Silence, beyond)}
		return rounds{
			{sc.name, interlockRedis, append(own, others...)},
			{sc.name, silence, []benchfmt.Value{of(got.Silence, serverShare)}},
		}
	}
	own := []benchfmt.Value{
		of(float64(got.Lost), lostHolds), of(float64(got.Failed), failed),
		of(float64(got.AllIn), allIn), of(float64(got.FirstUnlock), "unlock-ns"),
	}
	return rounds{{sc.name, interlockRedis, append(own, others...)}}
}
