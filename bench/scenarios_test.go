package main

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

func TestScenarios_NamePeersThatExist_AndCompareOnlyWhatTheyMeasure(t *testing.T) {
	known := []string{silence}
	for _, p := range peer.All() {
		known = append(known, p.Name)
	}
	all := allScenarios()
	for _, sc := range all {
		for _, p := range sc.peers {
			if !slices.Contains(known, p) {
				t.Errorf("%s measures %q, which is no peer", sc.name, p)
			}
		}
		for _, w := range append([]want{{peer: sc.own(), base: sc.base}}, sc.wants...) {
			for _, p := range []string{w.peer, w.base} {
				if p != "" && !slices.Contains(sc.peers, p) {
					t.Errorf("%s compares with %q, which it does not measure", sc.name, p)
				}
			}
			if w.from != "" && !slices.ContainsFunc(all, func(sc scenario) bool { return sc.name == w.from }) {
				t.Errorf("%s grows from %q, which is no scenario", sc.name, w.from)
			}
		}
	}
}

func TestScenarios_TogetherHaveEveryPeer_AndEachIsInOneTable(t *testing.T) {
	var measured []string
	for _, sc := range allScenarios() {
		measured = append(measured, sc.peers...)
		var in []string
		for _, table := range tables {
			if slices.ContainsFunc(table.scenarios(), func(other scenario) bool { return other.name == sc.name }) {
				in = append(in, table.name)
			}
		}
		if len(in) != 1 {
			t.Errorf("%s is in the tables %q, want one", sc.name, in)
		}
	}
	for _, p := range peer.All() {
		if !slices.Contains(measured, p.Name) {
			t.Errorf("%s is measured nowhere", p.Name)
		}
	}
}

func TestScenarios_NameOnlyUnitsThatATableCanWrite(t *testing.T) {
	for _, sc := range allScenarios() {
		all := slices.Concat(sc.shows...)
		for _, w := range sc.wants {
			all = append(all, w.unit)
		}
		for _, unit := range all {
			if units[unit].write == nil {
				t.Errorf("%s: nobody knows how to write %q", sc.name, unit)
			}
		}
	}
}

func TestFileScenarios_EachMeasuresAllOfItsPeers_AndMakesATable(t *testing.T) {
	for _, sc := range fileScenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			mustMeasure(t, small(sc), quick(t, 1))
		})
	}
}

func TestRedisScenarios_EachMeasuresAllOfItsPeers_AndMakesATable(t *testing.T) {
	for _, sc := range onAnyRedis() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel() // most of it waits, and each has its own server
			s := quick(t, 1)
			s.redis = startRedis(t)
			mustMeasure(t, small(sc), s)
		})
	}
}

func TestEngineScenarios_EachMeasuresAllOfItsPeers_AndMakesATable(t *testing.T) {
	for _, v := range rivals() {
		t.Run(v.engine, func(t *testing.T) {
			// one after the other, or the processes of one would be taken for another's
			server := startEngine(t, v.engine)
			t.Parallel() // most of it waits
			s := quick(t, 1)
			s.servers, s.pids = map[string]string{v.engine: server.Addr}, map[string][]int{v.engine: server.PIDs}
			for _, sc := range briefly(choose(engineScenarios(), v.engine+"-")) {
				all := mustMeasure(t, sc, s)
				for _, p := range sc.peers {
					trips, its := all.median(sc.name, p, roundTrips), all.median(sc.name, p, serverCPU)
					if sc.job.Kind == workload.Turns && (trips < 2 || runtime.GOOS == "linux" && its <= 0) {
						t.Errorf("%s: %s is said to need %v round trips for a lock with its release, at %v ns of the "+
							"server",
							sc.name, p, trips, its)
					}
				}
			}
		})
	}
}

func TestMeasure_EveryRoundHasEveryPeerOnce_AndItsOrderComesFromTheSeed(t *testing.T) {
	s := quick(t, 3)
	s.time, s.seed = time.Millisecond, 7
	mustMeasure(t, choose(fileScenarios(), "processes/hold=0")[0], s)
	if a, b := order(s, 1, 5), order(s, 1, 5); !slices.Equal(a, b) {
		t.Errorf("the same seed and round give %v and %v", a, b)
	}
}

func TestMeasure_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := quick(t, 1)
	s.time = time.Hour
	if _, err := measure(ctx, fileScenarios()[0], s, func(int) {}); err == nil {
		t.Error("no error although the context had ended")
	}
}
