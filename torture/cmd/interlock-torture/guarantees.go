package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/torture/target"
)

// guarantees writes the page. If the runs lack something without which they prove nothing, it begins with that.
func guarantees(cells []*cell, how string, lacks []string) string {
	var b strings.Builder
	b.WriteString(head + measured(how, commitsOf(cells)) + again(cells) + inMemory)
	if err := inconclusive(lacks); err != nil {
		fmt.Fprintf(&b, "**%v**\n\n", err)
	}
	b.WriteString("## Exclusion: no lock is granted while somebody else has it\n\n")
	for few := range slices.Chunk(targetsOf(cells), 7) { // more columns are hard to read
		b.WriteString(exclusions(cells, few))
	}
	writeFigures(&b, cells)
	writeTimes(&b, cells)
	writeFaults(&b, cells)
	writeChecks(&b, cells)
	b.WriteString(
		"\n## Why two holders are possible\n\n| engine | fault | reason | to make the run again |\n|---|---|---|---|\n")
	for _, c := range cells {
		if why := c.Target.Broken[c.fault]; why != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", c.Target.Name, c.fault, why, c.command())
		}
	}
	return b.String()
}

// again says how a cell is made again.
func again(cells []*cell) string {
	shape := cells[slices.IndexFunc(cells, func(c *cell) bool {
		return !c.Target.Inside || c == cells[len(cells)-1]
	})].shape()
	least := slices.MinFunc(cells, func(a, b *cell) int { return cmp.Compare(a.Seed, b.Seed) }).Seed
	return rule(shape, least)
}

// exclusions is the table of some engines, with a row for each fault that can be done to one of them.
func exclusions(cells []*cell, engines []*target.Target) string {
	var b strings.Builder
	b.WriteString(heading(engines))
	for _, f := range faultsOf(cells) {
		row := make([]*cell, len(engines))
		for i, g := range engines {
			row[i] = find(cells, g, f)
		}
		if !slices.ContainsFunc(row, func(c *cell) bool { return c != nil }) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", f)
		for _, c := range row {
			fmt.Fprintf(&b, " %s |", c.exclusion())
		}
		b.WriteString("\n")
	}
	return b.String() + "\n"
}

// exclusion is what the table says of a cell.
func (c *cell) exclusion() string {
	switch {
	case c == nil:
		return "–"
	case isMissing(c.err):
		if why := c.Target.Withheld(c.fault); why != nil {
			return "SKIPPED: " + why.Error()
		}
		return "SKIPPED: not installed"
	case c.rep == nil:
		return "SKIPPED: the run could not be made"
	}
	v := c.rep.Find("K4")
	switch broken := c.Target.Broken[c.fault] != ""; {
	case !c.rep.OK():
		return "**BROKEN**, see the report"
	case len(c.rep.Inconclusive()) > 0:
		return "INCONCLUSIVE: " + strings.Join(c.rep.Inconclusive(), "; ")
	case broken && len(v.Faults) == 0 && c.rep.Figures.Doubles == 0:
		return fmt.Sprintf("two holders possible, not seen in %d", v.Of)
	case broken:
		return fmt.Sprintf("**two holders possible**: %d of %d, double grants: %d",
			len(v.Faults), v.Of, c.rep.Figures.Doubles)
	}
	if v.Spared > 0 {
		return fmt.Sprintf("kept: %s, %d for a moment", share(0, v.Of), v.Spared)
	}
	return "kept: " + share(0, v.Of)
}

func find(cells []*cell, g *target.Target, f target.Fault) *cell {
	for _, c := range cells {
		if c.Target == g && c.fault == f {
			return c
		}
	}
	return nil
}

// faultsOf are the faults of any cell, in their usual order.
func faultsOf(cells []*cell) (faults []target.Fault) {
	for _, f := range append(target.All(), pairs, retain) {
		for _, c := range cells {
			if c.fault == f {
				faults = append(faults, f)
				break
			}
		}
	}
	return faults
}

func targetsOf(cells []*cell) (all []*target.Target) {
	for _, c := range cells {
		if !slices.Contains(all, c.Target) {
			all = append(all, c.Target)
		}
	}
	return all
}
