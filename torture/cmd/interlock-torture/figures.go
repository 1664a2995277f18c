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
	b.WriteString("## Figures\n\nSums over all runs of an engine. The share in brackets is what so many updates " +
		"behind the fence exclude with 95 % certainty. The numbers without a fence are the control. Lost updates and " +
		"refused requests have two columns, by cause:\n\n- **Faults**: the hold was to be renewed. A fault ended it, " +
		"or delayed its requests until another owner had the lock.\n- **Overruns**: one holder in ten takes a fixed " +
		"lease on purpose that is shorter than its work, which needs no fault. An update counts here if such a " +
		"holder had a part in its loss after the end of its lease.\n\n")
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
	b.WriteString("\n## Times\n\nEach cell has p50 / p99 / longest of how many; with fewer than 100 there is no " +
		"p99.\n\n- **Holder killed**: the lock becomes free when its lease or session ends, or at once where the " +
		"server sees the connection end. Then it is granted to the next waiter. In the third column clients are " +
		"killed and nothing else is done. A time above the lease means that the next in line was dead too and did " +
		"not claim its grant (on Redis, for two seconds or the lease), or that a session ended some ticks late. K7 " +
		"in [torture](../../torture/README.md#what-is-checked) has the bound.\n- **The same beside other faults**: " +
		"in these runs other faults overlap. Where a time is above the lease, a server was down or out of reach as " +
		"well, and granted nothing.\n- If other waiters were killed before the next grant, the time starts at the " +
		"last of these deaths, because each of them may have had the lock.\n- **Without a grant**: the longest time " +
		"without a grant in each failover, in which another server took over on command or after a death. The next " +
		"column has the times in which a server was killed, stopped, cut off or full, also if it was a leader with a " +
		"successor.\n- **Told**: when a holder knew that it had lost a hold that was to be renewed, if neither the " +
		"holder nor the machine stood still. First the time after the hold's end, which K5 bounds. Then the time " +
		"after the fault's begin, which includes the rest of a lease.\n- **The lease** is the engine's own. Some " +
		"runs in which two holders are possible have leases of 5 or 6 s.\n\n" +
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
	b.WriteString("\n## Faults\n\nHow often each fault was done over all runs of an engine and, in brackets, how " +
		"often to a holder: the client held a lock when the fault began. For faults of servers and of all clients it " +
		"is enough that some client did. `kill-waiter` aims at waiting clients.\n\n")
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
