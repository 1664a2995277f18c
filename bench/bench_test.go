package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

func TestMain(m *testing.M) {
	workload.ServeIfChild(peer.All())
	os.Exit(m.Run())
}

// Each benchmark runs rounds of a scenario that are far too short to learn much from: it is for "make bench BENCHTIME=1x",
// which shows that every one still works. The tables come from "go run .".

func BenchmarkGoroutines(b *testing.B) { benchmark(b, "goroutines") }

func BenchmarkProcesses(b *testing.B) { benchmark(b, "processes") }

func BenchmarkUncontended(b *testing.B) { benchmark(b, "uncontended") }

func BenchmarkHeld(b *testing.B) { benchmark(b, "held") }

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
		}
	}
	for _, w := range m.wants {
		b.ReportMetric(m.ratio(w.peer, w.base).Of, w.peer+"/"+w.base)
	}
}
