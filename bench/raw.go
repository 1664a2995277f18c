package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/interlock-go/interlock/bench/workload"
)

// benchfmt is every round in the format of Go's benchmarks, one line for each, so that benchstat compares two runs and
// anybody can check the tables.
func (r *report) benchfmt() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n# %s\n", r.command, r.machine)
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/interlock-go/interlock/bench\n", runtime.GOOS, runtime.GOARCH)
	for _, m := range r.measured {
		for _, p := range m.peers {
			for i := range m.results[p] {
				name := strings.ReplaceAll(m.name+"/peer="+p, " ", "-")
				fmt.Fprintf(&b, "Benchmark%s%s-%d 1%s\n", strings.ToUpper(name[:1]), name[1:], runtime.GOMAXPROCS(0),
					m.metrics(&m.results[p][i]))
			}
		}
	}
	return b.String()
}

func (m *measured) metrics(r *workload.Result) string {
	switch m.job.Kind {
	case workload.Serial:
		return fmt.Sprintf(" %.1f ns/op", r.PerOp) + m.cpuMetrics(r)
	case workload.Turns:
		return fmt.Sprintf(" %.1f ns/op %.0f p50-ns %.0f p99-ns", r.PerOp, waited(0.5)(r), waited(0.99)(r)) +
			m.cpuMetrics(r) + m.farMetrics(r, inRoundTrips) + m.roundTripMetrics(r)
	case workload.Held:
		h := r.Held
		return fmt.Sprintf(" %.1f B/lock %.4f goroutines/lock %d renewals %d batches %d lost",
			h.Bytes, h.Goroutines, h.Renewed, h.Batches, h.Lost)
	case workload.Handoff:
		h := r.Handoff
		return fmt.Sprintf(" %.0f p50-ns %.0f p99-ns %d handoffs %d hung %.2f waiting-commands/s %.2f pings/s",
			latency(0.5)(r), latency(0.99)(r), len(h.Latencies), h.Hung, h.Quiet, h.Pings) + m.serverMetrics(h) + m.farMetrics(r, handoffInRoundTrips)
	case workload.Herd:
		h := r.Herd
		return fmt.Sprintf(" %.0f ns/herd %.0f ns/grant %.4f commands/grant %.4f after-release/grant %d unserved %.0f server-cpu-ns/grant",
			h.Total, m.perWaiter(r), h.Commands, h.After, h.Unserved, h.ServerCPU)
	case workload.Keep:
		k := r.Keep
		return fmt.Sprintf(" %.1f commands/s %.1f B/hold %.4f goroutines/hold %d lost %d missing %.6f cpu-share %.6f server-cpu-share",
			k.Commands, k.Bytes, k.Goroutines, k.Lost, k.Missing, k.CPU, k.ServerCPU)
	default:
		return m.contendMetrics(r)
	}
}

// cpuMetrics are of the clients and of the server, if there is one.
func (m *measured) cpuMetrics(r *workload.Result) string {
	text := fmt.Sprintf(" %.0f cpu-ns/lock", r.CPU)
	if m.served() {
		text += fmt.Sprintf(" %.0f server-cpu-ns/lock", r.ServerCPU)
	}
	return text
}

func (m *measured) serverMetrics(h *workload.HandoffResult) string {
	if !m.served() {
		return ""
	}
	return fmt.Sprintf(" %.0f server-cpu-ns/handoff", h.ServerCPU)
}

func (m *measured) farMetrics(r *workload.Result, of func(*workload.Result) float64) string {
	if m.far == 0 {
		return ""
	}
	return fmt.Sprintf(" %.0f round-trip-ns %.4f round-trips", r.RoundTrip, of(r))
}

func (m *measured) roundTripMetrics(r *workload.Result) string {
	if !m.roundTripsCounted() {
		return ""
	}
	return fmt.Sprintf(" %.2f round-trips/lock", r.RoundTrips)
}

func (m *measured) contendMetrics(r *workload.Result) string {
	text := fmt.Sprintf(" %.1f locks/s %.0f p50-ns %.0f p99-ns %.0f longest-ns %.4f jain %.4f worst",
		r.Rate, waited(0.5)(r), waited(0.99)(r), waited(1)(r), jain(r), worst(r))
	text += m.cpuMetrics(r)
	if m.redis {
		text += fmt.Sprintf(" %.4f commands/lock", r.Commands)
	}
	if m.served() {
		text += fmt.Sprintf(" %d hung", r.Cut)
	}
	return text
}
