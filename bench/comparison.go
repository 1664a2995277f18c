package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
)

// onComparison is the name of the comparison of engines, which is no scenario of peers. It may be followed by a slash
// and the engines to compare, as in comparison/file,zk.
const onComparison = "comparison"

// comparisonFile is where -write puts the comparison.
const comparisonFile = "../docs/comparison.md"

const (
	// compareRounds is how often each fault happens at most.
	compareRounds = 3

	// compareLease is that of holders that fail: short, so that the run is; what depends on it grows with it.
	compareLease = 5 * time.Second

	compareWaiters = 100
)

// runComparison measures the engines, prints the tables and, if asked to, writes them.
func runComparison(ctx context.Context, s *settings, stdout, stderr io.Writer) error {
	engines := compare.Engines()
	if _, list, some := strings.Cut(s.scenario, "/"); some {
		engines = strings.Split(list, ",")
	}
	machine, began := describeMachine(ctx, s.dir), readProcessors()
	rows, err := compare.Run(ctx, engines, compare.Settings{
		Rounds: min(s.rounds, compareRounds), Time: s.time, Lease: compareLease, Waiters: compareWaiters, Dir: s.dir,
		Say: func(text string) { fmt.Fprintln(stderr, "bench: "+text) },
	})
	if err != nil {
		return err
	}
	text := comparisonText(rows, command(s), "Machine: "+machine+began.stolenUntil(readProcessors()))
	fmt.Fprint(stdout, text)
	if !s.write {
		return nil
	}
	return marksOf(onComparison).write(comparisonFile, text)
}

// column is one of the tables of the comparison.
type column struct {
	head   string
	of     func(r *compare.Row) compare.Cell
	write  func(float64) string
	ranged bool // smallest and largest are shown
}

// costs and ends are the columns of the two tables.
func costs() []column {
	return []column{
		{"acquire and release", func(r *compare.Row) compare.Cell { return r.Alone }, duration, false},
		{"hand-off, p50", func(r *compare.Row) compare.Cell { return r.Handoff }, duration, false},
		{"hand-off, p99", func(r *compare.Row) compare.Cell { return r.HandoffHi }, duration, false},
		{"refused try", func(r *compare.Row) compare.Cell { return r.Refused }, duration, false},
		{"its round trips", func(r *compare.Row) compare.Cell { return r.RoundTrips }, number, false},
		{
			fmt.Sprintf("woken by a release, of %d", compareWaiters),
			func(r *compare.Row) compare.Cell { return r.Woken }, number, false,
		},
	}
}

func ends() []column {
	return []column{
		{"free after kill -9", func(r *compare.Row) compare.Cell { return r.Killed }, duration, true},
		{"free after the connection is cut", func(r *compare.Row) compare.Cell { return r.Cut }, duration, true},
		{"the holder knows after", func(r *compare.Row) compare.Cell { return r.CutTold }, duration, true},
		{"free after SIGSTOP", func(r *compare.Row) compare.Cell { return r.Stopped }, duration, true},
		{"once it goes on, it knows after", func(r *compare.Row) compare.Cell { return r.ContTold }, duration, true},
	}
}

// comparisonText is the tables, with remarks about cells below them.
func comparisonText(rows []compare.Row, command, machine string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`cd bench && %s`\n\n%s\n\n", command, machine)
	fmt.Fprintf(&b,
		"Servers, those of each engine alone on the same machine while it was measured, over loopback: %s.\n\n",
		strings.Join(servers(rows), ", "))
	n := &notes{}
	fmt.Fprintf(&b, "### What it costs\n\n%s\n", n.table(rows, costs()))
	fmt.Fprintf(&b,
		"### How long a lock stays taken\n\nLeases and session timeouts were %v. In brackets are the shortest and the "+
			"longest of the rounds. In each round the fault comes at another moment between two signs of life.\n\n%s\n",
		compareLease, n.table(rows, ends()))
	for i, text := range n.texts {
		fmt.Fprintf(&b, "%d. %s.\n", i+1, strings.ToUpper(text[:1])+text[1:])
	}
	return b.String()
}

func servers(rows []compare.Row) []string {
	var all []string
	for _, r := range rows {
		if r.Server != "" && !slices.Contains(all, r.Server) {
			all = append(all, r.Server)
		}
	}
	if all == nil {
		return []string{"none"}
	}
	return all
}

// notes are said below the tables; the same one once.
type notes struct{ texts []string }

func (n *notes) number(text string) int {
	for i, t := range n.texts {
		if t == text {
			return i + 1
		}
	}
	n.texts = append(n.texts, text)
	return len(n.texts)
}

func (n *notes) table(rows []compare.Row, columns []column) string {
	heads := []string{"engine"}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	var cells [][]string
	for i := range rows {
		line := []string{rows[i].Label}
		for _, c := range columns {
			line = append(line, n.cell(c.of(&rows[i]), &c))
		}
		cells = append(cells, line)
	}
	return markdown(1, heads, cells)
}

// cell writes a number, or a dash, with the number of its note in brackets.
func (n *notes) cell(c compare.Cell, of *column) string {
	text := "–"
	if len(c.Values) > 0 {
		text = of.write(center(c.Values))
		if of.ranged && len(c.Values) > 1 {
			text += fmt.Sprintf(" (%s to %s)", of.write(slices.Min(c.Values)), of.write(slices.Max(c.Values)))
		}
	}
	if c.Why != "" {
		text += fmt.Sprintf(" [%d]", n.number(c.Why))
	}
	return text
}
