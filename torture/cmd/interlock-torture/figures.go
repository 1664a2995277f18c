package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/target"
)

// writeFigures writes what an engine's runs were worth.
func writeFigures(b *strings.Builder, cells []*cell) {
	b.WriteString(aboutFigures)
	b.WriteString("| engine | grants | updates behind the fence: lost | stale requests refused: after faults | of " +
		"overruns | updates without a fence: lost by faults | by overruns | " +
		"faults that hit a client with a lock | longest time from a fault's end to the next grant |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, g := range targetsOf(cells) {
		f, lost := figuresOf(cells, g)
		percent := func(n int) float64 { return 100 * float64(n) / float64(max(1, f.PlainWrites)) }
		fmt.Fprintf(b, "| %s | %d | %s | %d | %d | %d of %d (%.2f %%) | %d (%.1f %%) | %d | %v |\n", g.Name, f.Grants,
			share(lost, f.Increments), f.Stale.Faults, f.Stale.Overruns, f.PlainLost.Faults, f.PlainWrites,
			percent(f.PlainLost.Faults), f.PlainLost.Overruns, percent(f.PlainLost.Overruns), f.HolderBlows,
			f.SlowestAfter.Round(time.Millisecond))
	}
}

// writeTimes writes how long what went wrong was felt.
func writeTimes(b *strings.Builder, cells []*cell) {
	b.WriteString(aboutTimes +
		"| engine | lease | holder killed, to the next grant of its lock | the same beside other faults | " +
		"without a grant: in a failover | as a server was away | holder told of its loss, after the hold's end | " +
		"the same after the fault's begin |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, g := range targetsOf(cells) {
		f, _ := figuresOf(cells, g)
		alone, beside := deathsOf(cells, g)
		fmt.Fprintf(b, "| %s | %v | %v | %v | %v | %v | %v | %v |\n",
			g.Name, g.Lease, alone, beside, f.Failovers, f.Outages, f.LossTold, f.FaultTold)
	}
}

// deathsOf are the times from a holder's death to the next grant: in an engine's runs in which nothing else is
// done, and in the others.
func deathsOf(cells []*cell, g *target.Target) (alone, beside check.Delays) {
	for _, c := range cells {
		switch {
		case c.Target != g || c.rep == nil:
		case c.fault.Kills():
			alone = append(alone, c.rep.Figures.AfterDeath...)
		default:
			beside = append(beside, c.rep.Figures.AfterDeath...)
		}
	}
	return alone, beside
}

// writeFaults writes how often each fault was done to each engine.
func writeFaults(b *strings.Builder, cells []*cell) {
	b.WriteString(aboutFaults)
	var tables []string
	for few := range slices.Chunk(targetsOf(cells), 7) {
		tables = append(tables, hits(cells, few))
	}
	b.WriteString(strings.Join(tables, "\n"))
}

// hits is the table of some engines, with a row for each fault that was done to one of them.
func hits(cells []*cell, engines []*target.Target) string {
	var b strings.Builder
	b.WriteString(heading(engines))
	for _, fault := range target.All() {
		row, done := "", 0
		for _, g := range engines {
			f, _ := figuresOf(cells, g)
			of := f.ByFault[fault]
			if done += of.Done; of.Done == 0 {
				row += " – |"
				continue
			}
			row += fmt.Sprintf(" %d (%d) |", of.Done, of.Holder)
		}
		if done > 0 {
			fmt.Fprintf(&b, "| %s |%s\n", fault, row)
		}
	}
	return b.String()
}

// heading begins a table with a column for each of the engines.
func heading(engines []*target.Target) string {
	names := ""
	for _, g := range engines {
		names += " " + g.Name + " |"
	}
	return "| fault |" + names + "\n|---|" + strings.Repeat("---|", len(engines)) + "\n"
}

// figuresOf adds up an engine's runs, and counts the updates that were lost behind the fence.
func figuresOf(cells []*cell, g *target.Target) (f check.Figures, lost int) {
	for _, c := range cells {
		if c.Target == g && c.rep != nil {
			f.Add(c.rep.Figures)
			lost += len(c.rep.Find("K1").Faults)
		}
	}
	return f, lost
}
