package main

import "github.com/interlock-go/interlock/bench/workload"

// handoff is the table of two processes that pass a lock to each other.
func (m *measured) handoff() sheet {
	heads := []string{"peer", "p50"}
	if m.far > 0 {
		heads = append(heads, aTrip, inTrips)
	}
	heads = append(heads, m.ofBases("p50 of ")...)
	heads = append(heads, "p99")
	heads = append(heads, m.ofBases("p99 of ")...)
	heads = append(heads, "hand-offs", "hung")
	if m.served() {
		heads = append(heads, "CPU of the server a hand-off")
	}
	if m.listened() {
		heads = append(heads, "commands/s while one waits", "pings/s")
	}
	var rows [][]string
	for _, p := range m.peers {
		row := []string{p, duration(m.median(p, latency(0.5)))}
		if m.far > 0 {
			row = append(row, duration(m.median(p, roundTrip)), few(m.median(p, handoffInRoundTrips)))
		}
		row = append(row, m.ratiosOf(p, latency(0.5))...)
		row = append(row, duration(m.median(p, latency(0.99))))
		row = append(row, m.ratiosOf(p, latency(0.99))...)
		row = append(row,
			thousands(m.sum(p, func(r *workload.Result) float64 { return float64(len(r.Handoff.Latencies)) })),
			thousands(m.sum(p, func(r *workload.Result) float64 { return float64(r.Handoff.Hung) })))
		if m.served() {
			row = append(row, cost(m.median(p, func(r *workload.Result) float64 { return r.Handoff.ServerCPU })))
		}
		if m.listened() {
			row = append(row, few(m.median(p, func(r *workload.Result) float64 { return r.Handoff.Quiet })),
				few(m.median(p, func(r *workload.Result) float64 { return r.Handoff.Pings })))
		}
		rows = append(rows, row)
	}
	return sheet{heads, rows}
}

// listened reports whether it was counted what is sent while one waits.
func (m *measured) listened() bool { return m.redis && m.job.Quiet > 0 }

// herd is the table of very many who wait.
func (m *measured) herd() sheet {
	heads := append([]string{"peer", "all served after"}, m.ofBases("of ")...)
	heads = append(heads, "for each")
	if m.redis {
		heads = append(heads, "commands a grant", "of them after the release")
	}
	if m.served() {
		heads = append(heads, "CPU of the server a grant")
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
		if m.served() {
			row = append(row, cost(m.median(p, func(r *workload.Result) float64 { return r.Herd.ServerCPU })))
		}
		rows = append(rows, append(row, thousands(m.median(p, unserved))))
	}
	return sheet{heads, rows}
}

// keep is the table of many holds.
func (m *measured) keep() sheet {
	var rows [][]string
	for _, p := range m.peers {
		for _, r := range m.results[p] {
			k := r.Keep
			rows = append(rows, []string{
				p, few(k.Commands), thousands(k.Bytes), few(k.Goroutines), percent(k.CPU), percent(k.ServerCPU),
				thousands(float64(k.Lost)), thousands(float64(k.Missing)),
			})
		}
	}
	return sheet{[]string{"peer", "commands/s", "bytes a hold", "goroutines a hold", ofCPU, ofServerCPU, "lost", "never taken"}, rows}
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
