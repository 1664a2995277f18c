package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

// report is a whole run.
type report struct {
	command  string
	machine  string
	measured []*measured
}

// markdown is the run as tables.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`\n\n%s\n\n", r.command, r.machine)
	if rows := r.wants(); len(rows) > 0 {
		fmt.Fprintf(&b, "### What was demanded\n\n%s\n", table([]string{"what", "demanded", "measured", "kept"}, rows))
	}
	for i := 0; i < len(r.measured); {
		n := r.family(i)
		r.section(&b, r.measured[i:i+n])
		i += n
	}
	fmt.Fprintf(&b, "### The peers\n\n%s", r.legend())
	return b.String()
}

// family is how many scenarios from i on make one table.
func (r *report) family(i int) int {
	n := 1
	for ; r.measured[i].family != "" && i+n < len(r.measured) && r.measured[i+n].family == r.measured[i].family; n++ {
	}
	return n
}

// section is a table with its title, and with the command that repeats it.
func (r *report) section(b *strings.Builder, all []*measured) {
	fmt.Fprintf(b, "### %s\n\n", all[0].title)
	if all[0].command != "" {
		fmt.Fprintf(b, "`%s`\n\n", all[0].command)
	}
	sum := all[0].sheet()
	if all[0].family == "" {
		fmt.Fprintf(b, "%s\n", table(sum.heads, sum.rows))
		return
	}
	heads, rows := widest(all), [][]string(nil)
	for _, m := range all {
		one := m.sheet()
		for _, row := range one.rows {
			rows = append(rows, append([]string{m.point}, one.under(heads, row)...))
		}
	}
	fmt.Fprintf(b, "%s\n", table(append([]string{all[0].of}, heads...), rows))
}

// sheet is a table before it is written.
type sheet struct {
	heads []string
	rows  [][]string
}

// widest are the heads of the scenario that has most of them: another one may lack whom the others are compared with.
func widest(all []*measured) []string {
	var heads []string
	for _, m := range all {
		if h := m.sheet().heads; len(h) > len(heads) {
			heads = h
		}
	}
	return heads
}

// under puts a row of s under the heads given.
func (s *sheet) under(heads, row []string) []string {
	cells := make([]string, len(heads))
	for i, h := range heads {
		cells[i] = "-"
		if at := slices.Index(s.heads, h); at >= 0 {
			cells[i] = row[at]
		}
	}
	return cells
}

func (m *measured) sheet() sheet {
	switch m.job.Kind {
	case workload.Contend:
		return m.contended()
	case workload.Serial, workload.Turns:
		return m.serial()
	case workload.Held:
		return m.held()
	case workload.Handoff:
		return m.handoff()
	case workload.Herd:
		return m.herd()
	default:
		return m.keep()
	}
}

// contended is the table of many who want one lock.
func (m *measured) contended() sheet {
	heads := []string{"peer", "locks/s"}
	for _, base := range m.bases {
		heads = append(heads, "of "+base)
	}
	heads = append(heads, "wait p50", "p99", "longest", "Jain", "worst share")
	heads = append(heads, ofCPU)
	if m.served() {
		heads = append(heads, ofServerCPU)
	}
	if m.redis {
		heads = append(heads, "commands a lock")
	}
	if m.served() {
		heads = append(heads, "hung")
	}
	var rows [][]string
	for _, p := range m.peers {
		row := append([]string{p, thousands(m.median(p, m.value))}, m.ratios(p)...)
		row = append(row,
			duration(m.median(p, waited(0.5))), duration(m.median(p, waited(0.99))), duration(m.median(p, waited(1))),
			fmt.Sprintf("%.3f", m.median(p, jain)), fmt.Sprintf("%.2f", m.median(p, worst)))
		row = append(row, cost(m.median(p, clientCPU)))
		if m.served() {
			row = append(row, cost(m.median(p, serverCPU)))
		}
		if m.redis {
			row = append(row, few(m.median(p, commands)))
		}
		if m.served() {
			row = append(row, thousands(m.sum(p, func(r *workload.Result) float64 { return float64(r.Cut) })))
		}
		rows = append(rows, row)
	}
	return sheet{heads, rows}
}

// serial is the table of one who is alone.
func (m *measured) serial() sheet {
	heads := []string{"peer", "time"}
	if m.far > 0 {
		heads = append(heads, aTrip, inTrips)
	}
	for _, base := range m.bases {
		heads = append(heads, "of "+base)
	}
	single := m.job.Kind == workload.Turns
	if single {
		heads = append(heads, "p50", "p99")
	}
	heads = append(heads, ofCPU)
	if m.served() {
		heads = append(heads, ofServerCPU)
	}
	if m.roundTripsCounted() {
		heads = append(heads, "round trips")
	}
	var rows [][]string
	for _, p := range m.peers {
		row := []string{p, duration(m.median(p, m.value))}
		if m.far > 0 {
			row = append(row, duration(m.median(p, roundTrip)), few(m.median(p, inRoundTrips)))
		}
		row = append(row, m.ratios(p)...)
		if single {
			row = append(row, duration(m.median(p, waited(0.5))), duration(m.median(p, waited(0.99))))
		}
		row = append(row, cost(m.median(p, clientCPU)))
		if m.served() {
			row = append(row, cost(m.median(p, serverCPU)))
		}
		if m.roundTripsCounted() {
			row = append(row, few(m.median(p, roundTrips)))
		}
		rows = append(rows, row)
	}
	return sheet{heads, rows}
}

// What heads are called that several tables have.
const (
	ofCPU       = "CPU of clients"
	ofServerCPU = "of the server"
	aTrip       = "round trip"
	inTrips     = "in round trips"
)

func (m *measured) ratios(name string) []string { return m.ratiosOf(name, m.value) }

func (m *measured) ratiosOf(name string, number func(*workload.Result) float64) []string {
	var cells []string
	for _, base := range m.bases {
		if base == name {
			cells = append(cells, "1")
			continue
		}
		cells = append(cells, ratio(m.ratioOf(name, base, number)))
	}
	return cells
}

// held is the table of many locks at once.
func (m *measured) held() sheet {
	var rows [][]string
	for _, p := range m.peers {
		for _, r := range m.results[p] {
			h := r.Held
			rows = append(rows, []string{
				p, fmt.Sprintf("%.0f", h.Bytes), fmt.Sprintf("%.4f", h.Goroutines),
				thousands(float64(h.Renewed)), thousands(float64(h.Batches)), fmt.Sprint(h.Lost),
			})
		}
	}
	return sheet{[]string{"engine", "bytes a lock", "goroutines a lock", "renewals", "in batches", "lost"}, rows}
}

// legend says what each peer that appears does.
func (r *report) legend() string {
	seen := map[string]bool{}
	for _, m := range r.measured {
		for _, p := range m.peers {
			seen[p] = true
		}
	}
	var b strings.Builder
	for _, p := range peer.All() {
		if seen[p.Name] {
			fmt.Fprintf(&b, "- **%s**: %s.\n", p.Name, p.Does)
		}
	}
	for _, e := range []struct{ name, does string }{
		{workload.EngineMem, "the core with memlock, which keeps the locks in the same heap"},
		{workload.EngineNone, "the core with an engine that grants everything and remembers nothing: the core's own part"},
	} {
		if seen[e.name] {
			fmt.Fprintf(&b, "- **%s**: %s.\n", e.name, e.does)
		}
	}
	return b.String()
}

// table writes a Markdown table. The first column is words, the others are numbers.
func table(heads []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	b.WriteString("|---" + strings.Repeat("|---:", len(heads)-1) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}
