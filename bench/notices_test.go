package main

import (
	"slices"
	"strings"
	"testing"
)

func TestNoticed_SaysHowManyTimesBetterInterlockIs_AndItsLossesBold(t *testing.T) {
	all := told("uncontended", perOp, map[string][]float64{
		"interlock-file": {2e3}, "flock": {1e3}, "flock-kept": {4e3},
	})
	all = append(all, told("redis-herd", perHerd, map[string][]float64{
		interlockRedis: {1e8}, floorHandoff: {1e8}, redsync: {2e8}, "rueidislock": {1e9},
	})...)
	all = append(all, told("redis-herd", unserved, map[string][]float64{"rueidislock": {1}})...)
	text := all.noticed()
	for _, part := range []string{
		"| 2 µs | flock 1 µs (**0.50**), flock-kept 4 µs (2.00) |",
		"| 100 ms | blpop 100 ms (1.00), redsync 200 ms (2.00), rueidislock > 1 s (> 10) |",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("it lacks %q:\n%s", part, text)
		}
	}
	if rows := strings.Count(text, "\n"); rows != 4 {
		t.Errorf("%d lines, want a head and what was measured:\n%s", rows, text)
	}
}

// A row of a scenario or a peer that has another name by now would be left out in silence.
func TestNotices_NameScenariosAndTheirPeers(t *testing.T) {
	for _, n := range notices {
		i := slices.IndexFunc(allScenarios(), func(sc scenario) bool { return sc.name == n.scenario })
		if i < 0 {
			t.Errorf("%q: there is no scenario %s", n.does, n.scenario)
			continue
		}
		for _, p := range append(strings.Fields(n.others), n.own) {
			if !slices.Contains(allScenarios()[i].peers, p) {
				t.Errorf("%q: %s does not measure %s", n.does, n.scenario, p)
			}
		}
	}
}
