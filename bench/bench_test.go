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
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/redisd"
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

// Each benchmark runs rounds of a scenario that are far too short to learn much from: it is for "make bench-check",
// which shows that every one still works. The tables come from "go run .".

func BenchmarkGoroutines(b *testing.B) { benchmark(b, "goroutines") }

func BenchmarkProcesses(b *testing.B) { benchmark(b, "processes") }

func BenchmarkUncontended(b *testing.B) { benchmark(b, "uncontended") }

func BenchmarkHeld(b *testing.B) { benchmark(b, "held") }

func BenchmarkRedis(b *testing.B) { benchmarkOnRedis(b, redisScenarios()) }

func BenchmarkDistance(b *testing.B) { benchmarkOnRedis(b, onePerFamily(distanceScenarios())) }

func BenchmarkGrowth(b *testing.B) { benchmarkOnRedis(b, onePerFamily(growthScenarios())) }

// onePerFamily leaves the first scenario of each table.
func onePerFamily(all []scenario) []scenario {
	return slices.CompactFunc(all, func(a, b scenario) bool { return a.family == b.family })
}

func benchmarkOnRedis(b *testing.B, all []scenario) {
	b.Helper()
	for _, sc := range all {
		_, rest, _ := strings.Cut(sc.name, "-")
		b.Run(rest, func(b *testing.B) {
			s := &settings{rounds: b.N, time: 20 * time.Millisecond, dir: b.TempDir(), seed: 1, redis: startRedis(b)}
			m, err := measure(b.Context(), small(sc), s, func(int) {})
			if err != nil {
				b.Fatal(err)
			}
			reportMetrics(b, m)
		})
	}
}

// startRedis returns the address of a server of the test's own, and skips the test where there is none.
func startRedis(t testing.TB) string {
	t.Helper()
	s, err := redisd.Start(context.Background())
	if errors.Is(err, redisd.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
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
	return s.Addr
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

func benchmark(b *testing.B, prefix string) {
	b.Helper()
	for _, sc := range choose(scenarios(), prefix) {
		_, rest, _ := strings.Cut(sc.name, "/")
		b.Run(rest, func(b *testing.B) {
			s := settings{rounds: b.N, time: 20 * time.Millisecond, dir: b.TempDir(), seed: 1}
			if sc.job.Kind == workload.Held {
				sc.job.Locks, sc.job.Lease, sc.job.Renewals = 500, 600*time.Millisecond, 1
			}
			m, err := measure(b.Context(), sc, &s, func(int) {})
			if err != nil {
				b.Fatal(err)
			}
			reportMetrics(b, m)
		})
	}
}

func reportMetrics(b *testing.B, m *measured) {
	b.Helper()
	for _, p := range m.peers {
		unit := strings.ReplaceAll(p, " ", "-")
		switch m.job.Kind {
		case workload.Contend:
			b.ReportMetric(m.median(p, m.value), unit+"-locks/s")
			b.ReportMetric(m.median(p, jain), unit+"-jain")
		case workload.Serial:
			b.ReportMetric(m.median(p, m.value), unit+"-ns")
		case workload.Held:
			b.ReportMetric(m.results[p][0].Held.Bytes, unit+"-B/lock")
			b.ReportMetric(float64(m.results[p][0].Held.Lost), unit+"-lost")
		case workload.Turns, workload.Handoff, workload.Herd:
			b.ReportMetric(m.median(p, m.value), unit+"-ns")
		case workload.Keep:
			b.ReportMetric(m.results[p][0].Keep.Commands, unit+"-commands/s")
			b.ReportMetric(float64(m.results[p][0].Keep.Lost), unit+"-lost")
		}
	}
	for _, w := range m.wants {
		if w.base == "" {
			continue
		}
		b.ReportMetric(m.ratio(w.peer, w.base).Of, w.peer+"/"+w.base)
	}
}
