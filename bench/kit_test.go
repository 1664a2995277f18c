package main

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/distance"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

func TestMain(m *testing.M) {
	compare.ServeIfChild()
	distance.ServeIfChild()
	workload.ServeIfChild(peer.All())
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or each of very many processes takes a second to end under -race
	}
	os.Exit(m.Run())
}

// startRedis returns the address of a server of the test's own, and skips the test where there is none.
func startRedis(t testing.TB) string {
	t.Helper()
	return startEngine(t, engined.Redis).Addr
}

// startEngine starts a server that ends with the test, and skips the test where there is none.
func startEngine(t testing.TB, engine string) *engined.Server {
	t.Helper()
	s, err := engined.Start(context.Background(), engine)
	if errors.Is(err, engined.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// quick are the settings of a run that takes a moment.
func quick(t testing.TB, rounds int) *settings {
	t.Helper()
	return &settings{rounds: rounds, time: 20 * time.Millisecond, dir: t.TempDir(), seed: 1}
}

// onePerFamily leaves the first scenario of each family.
func onePerFamily(all []scenario) []scenario {
	return slices.CompactFunc(all, func(a, b scenario) bool { return a.family() == b.family() })
}

// onAnyRedis are the scenarios on Redis, of families that grow one.
func onAnyRedis() []scenario {
	return slices.Concat(redisScenarios(), clientScenarios(), retainScenarios(),
		onePerFamily(distanceScenarios()), onePerFamily(growthScenarios()))
}

// small is a scenario that takes a moment.
func small(sc scenario) scenario {
	sc.job.Locks, sc.job.Lease, sc.job.Renewals = min(sc.job.Locks, 50), min(sc.job.Lease, 600*time.Millisecond), 1
	sc.job.Quiet, sc.job.Settle = min(sc.job.Quiet, 10*time.Millisecond), min(sc.job.Settle, 50*time.Millisecond)
	if sc.job.Kind == workload.Herd {
		sc.job.Processes, sc.job.Goroutines, sc.job.Limit = 2, 4, 500*time.Millisecond
	}
	if sc.job.Apart && runtime.NumCPU() < 2 {
		sc.job.Apart = false
	}
	return sc
}

// briefly makes the scenarios take a moment. Of the herds it leaves one of each sort.
func briefly(all []scenario) []scenario {
	var some []scenario
	for _, sc := range all {
		if sc.job.Kind == workload.Herd {
			if !strings.HasSuffix(sc.name, "/100") {
				continue
			}
			sc.job.Processes, sc.job.Goroutines = 2, 3
		}
		// PostgreSQL starts a process for each of the peers' connections: five hundred of them, beside four other
		// servers, kept it from answering the next client in time.
		sc.job.Goroutines = min(sc.job.Goroutines, 8)
		some = append(some, sc)
	}
	return some
}

// mustMeasure returns the rounds of a scenario, each of whose peers is in them and in the table.
func mustMeasure(t *testing.T, sc scenario, s *settings) rounds {
	t.Helper()
	all, err := measure(t.Context(), sc, s, func(int) {})
	if err != nil {
		t.Fatalf("%s: %v", sc.name, err)
	}
	var text string
	for _, table := range all.tablesOf() {
		text += table.markdown(all)
	}
	for _, p := range sc.peers {
		if n := len(all.each(sc.name, p, sc.shows[0][0])); n != sc.rounds(s) {
			t.Errorf("%s: %s is measured %d times, want %d", sc.name, p, n, sc.rounds(s))
		}
	}
	if !strings.Contains(text, "| `"+sc.name+"` |") {
		t.Errorf("%s is in no table:\n%s", sc.name, text)
	}
	return all
}

// told makes rounds in which each number is told of one peer after the other.
func told(scenario, unit string, peers map[string][]float64) (all rounds) {
	for p, xs := range peers {
		for _, x := range xs {
			all = append(all, line{scenario, p, valuesOf(unit, x)})
		}
	}
	return all
}
