package main

import (
	"fmt"

	"github.com/interlock-go/interlock/bench/workload"
)

// handoff is the table of two processes that pass a lock to each other.
func (m *measured) handoff() string {
	heads := []string{"peer", "p50"}
	heads = append(heads, m.ofBases("p50 of ")...)
	heads = append(heads, "p99")
	heads = append(heads, m.ofBases("p99 of ")...)
	heads = append(heads, "hand-offs", "hung")
	if m.redis {
		heads = append(heads, "commands/s while one waits", "pings/s")
	}
	var rows [][]string
	for _, p := range m.peers {
		row := []string{p, duration(m.median(p, latency(0.5)))}
		row = append(row, m.ratiosOf(p, latency(0.5))...)
		row = append(row, duration(m.median(p, latency(0.99))))
		row = append(row, m.ratiosOf(p, latency(0.99))...)
		row = append(row,
			thousands(m.sum(p, func(r *workload.Result) float64 { return float64(len(r.Handoff.Latencies)) })),
			thousands(m.sum(p, func(r *workload.Result) float64 { return float64(r.Handoff.Hung) })))
		if m.redis {
			row = append(row, few(m.median(p, func(r *workload.Result) float64 { return r.Handoff.Quiet })),
				few(m.median(p, func(r *workload.Result) float64 { return r.Handoff.Pings })))
		}
		rows = append(rows, row)
	}
	return table(heads, rows)
}

// herd is the table of very many who wait.
func (m *measured) herd() string {
	heads := append([]string{"peer", "all served after"}, m.ofBases("of ")...)
	heads = append(heads, "for each")
	if m.redis {
		heads = append(heads, "commands a grant", "of them after the release")
	}
	heads = append(heads, "not served")
	var rows [][]string
	for _, p := range m.peers {
		row := append([]string{p, duration(m.median(p, m.value))}, m.ratios(p)...)
		if m.median(p, unserved) > 0 { // the time is a limit
			for i := range row[1:] {
				row[i+1] = "more than " + row[i+1]
			}
		}
		row = append(row, duration(m.median(p, m.perWaiter)))
		if m.redis {
			row = append(row, few(m.median(p, perGrant)), few(m.median(p, func(r *workload.Result) float64 { return r.Herd.After })))
		}
		rows = append(rows, append(row, thousands(m.median(p, unserved))))
	}
	return table(heads, rows)
}

// keep is the table of many holds.
func (m *measured) keep() string {
	var rows [][]string
	for _, p := range m.peers {
		for _, r := range m.results[p] {
			k := r.Keep
			rows = append(rows, []string{
				p, thousands(k.Commands), thousands(k.Bytes), few(k.Goroutines),
				thousands(float64(k.Lost)), thousands(float64(k.Missing)),
			})
		}
	}
	return table([]string{"peer", "commands/s", "bytes a hold", "goroutines a hold", "lost", "never taken"}, rows)
}

// ofBases are the heads of the columns that ratios fills.
func (m *measured) ofBases(prefix string) []string {
	var heads []string
	for _, base := range m.bases {
		heads = append(heads, prefix+base)
	}
	return heads
}

// sum is a number over all rounds.
func (m *measured) sum(name string, number func(*workload.Result) float64) float64 {
	var sum float64
	for _, x := range m.each(name, number) {
		sum += x
	}
	return sum
}

// few writes a number that may be small, with two digits or more.
func few(x float64) string {
	switch {
	case x >= 100:
		return thousands(x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x == 0:
		return "0"
	case x < 0.1:
		return fmt.Sprintf("%.2g", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
