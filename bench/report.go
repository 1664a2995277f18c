package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/stats"
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

// wants compares what was measured with what interlock demands of itself.
func (r *report) wants() [][]string {
	var rows [][]string
	for _, m := range r.measured {
		for _, w := range m.wants {
			x, words := m.wanted(&w)
			rows = append(rows, []string{w.says, w.bound(), words, w.verdict(x)})
		}
		if m.job.Kind == workload.Held {
			rows = append(rows, m.heldWants()...)
		}
	}
	return slices.Concat(rows, r.herdWants(), r.waiterWants())
}

// wanted returns the number that a want is about, and writes it.
func (m *measured) wanted(w *want) (x float64, words string) {
	of := w.of
	if of == nil {
		of = m.value
	}
	if w.base == "" {
		x = m.median(w.peer, of)
		return x, few(x)
	}
	q := m.ratioOf(w.peer, w.base, of)
	return q.Of, ratio(q)
}

func (w *want) bound() string {
	if w.none {
		return "0"
	}
	if w.atMost > 0 {
		return fmt.Sprintf("at most %.3g", w.atMost)
	}
	if w.atLeast > 0 {
		return fmt.Sprintf("at least %.3g", w.atLeast)
	}
	if w.base == "" {
		return "few"
	}
	return "a large factor"
}

func (w *want) verdict(q float64) string {
	if w.atLeast == 0 && w.atMost == 0 && !w.none {
		return "judge"
	}
	return yes(w.kept(q))
}

func (w *want) kept(q float64) bool {
	if w.none {
		return q == 0
	}
	return q >= w.atLeast && (w.atMost == 0 || q <= w.atMost)
}

// contended is the table of many who want one lock.
func (m *measured) contended() sheet {
	heads := []string{"peer", "locks/s"}
	for _, base := range m.bases {
		heads = append(heads, "of "+base)
	}
	heads = append(heads, "wait p50", "p99", "longest", "Jain", "worst share")
	heads = append(heads, ofCPU)
	if m.redis {
		heads = append(heads, ofServerCPU, "commands a lock")
	}
	if m.redis || m.engine != "" {
		heads = append(heads, "hung")
	}
	var rows [][]string
	for _, p := range m.peers {
		row := append([]string{p, thousands(m.median(p, m.value))}, m.ratios(p)...)
		row = append(row,
			duration(m.median(p, waited(0.5))), duration(m.median(p, waited(0.99))), duration(m.median(p, waited(1))),
			fmt.Sprintf("%.3f", m.median(p, jain)), fmt.Sprintf("%.2f", m.median(p, worst)))
		row = append(row, cost(m.median(p, clientCPU)))
		if m.redis {
			row = append(row, cost(m.median(p, serverCPU)), few(m.median(p, commands)))
		}
		if m.redis || m.engine != "" {
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
	heads = append(heads, ofCPU)
	if m.redis {
		heads = append(heads, ofServerCPU)
	}
	var rows [][]string
	for _, p := range m.peers {
		row := []string{p, duration(m.median(p, m.value))}
		if m.far > 0 {
			row = append(row, duration(m.median(p, roundTrip)), few(m.median(p, trips)))
		}
		row = append(append(row, m.ratios(p)...), cost(m.median(p, clientCPU)))
		if m.redis {
			row = append(row, cost(m.median(p, serverCPU)))
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

// What a held lock may cost.
const (
	mostBytes      = 600
	mostGoroutines = 0.01 // for each of very many locks: a handful for the whole client
)

// heldWants are for memlock. What a held lock may weigh is demanded on Redis, where the engine keeps nothing in this heap.
func (m *measured) heldWants() [][]string {
	var rows [][]string
	for _, h := range m.results[workload.EngineMem] {
		r := h.Held
		rows = append(rows,
			[]string{
				"goroutines for each held lock", "0",
				fmt.Sprintf("%.4f", r.Goroutines), yes(r.Goroutines < mostGoroutines),
			},
			[]string{"held locks lost while being renewed", "0", fmt.Sprint(r.Lost), yes(r.Lost == 0)})
	}
	return rows
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

func ratio(q stats.Ratio) string {
	return fmt.Sprintf("%s (%s to %s)", times(q.Of), times(q.Min), times(q.Max))
}

// times writes a ratio with two digits or more.
func times(q float64) string {
	switch {
	case q >= 10:
		return thousands(q)
	case q >= 0.095:
		return fmt.Sprintf("%.2f", q)
	default:
		return fmt.Sprintf("%.2g", q)
	}
}

// thousands writes a number with its groups apart.
func thousands(x float64) string {
	digits := fmt.Sprintf("%.0f", x)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// duration writes nanoseconds with three digits.
func duration(ns float64) string {
	switch d := time.Duration(ns); {
	case math.IsNaN(ns): // of nothing that was measured
		return "-"
	case d < time.Microsecond:
		return fmt.Sprintf("%.3g ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	default:
		return fmt.Sprintf("%.3g s", ns/1e9)
	}
}

// cost writes nanoseconds on processors, which are zero where the system does not tell.
func cost(ns float64) string {
	if ns == 0 {
		return "-"
	}
	return duration(ns)
}

// percent writes a part of one processor's time, which is zero where the system does not tell.
func percent(x float64) string {
	if x == 0 {
		return "-"
	}
	return few(100*x) + " %"
}

func yes(kept bool) string {
	if kept {
		return "yes"
	}
	return "**no**"
}
