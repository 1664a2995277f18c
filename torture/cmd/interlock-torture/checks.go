package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/target"
)

// writeChecks writes what all checks but exclusion have looked at, and what they found.
func writeChecks(b *strings.Builder, cells []*cell) {
	fmt.Fprintf(b, `
## Checks

Each cell has the number of cases that contradict the claim, of how many that were looked at, over all runs of an engine. The cells in which
two holders are possible are included. The claims are in [torture](../../torture/README.md#what-is-checked):

- **K2**: no older holder passes the fence (in brackets the share that so many cases exclude with 95 %% certainty);
- **K3**: tokens grow (with the largest step back, if there was one);
- **K5**: no holder acts after its deadline, or is told of it late;
- **K6**: no loss is told without a cause, and without a fault no hold is lost (with the rate per hour of a held lock that the runs exclude with 95 %% certainty);
- **K7**: all clients get on after faults; without faults no client waits in vain or is overtaken;
- **K8**: calls end with their contexts;
- **K9**: no lock is left and no permit is missing;
- **K10**: processes leave no goroutine, descriptor or connection;
- **K11**: sharing, changes of mode, re-entry, count-downs and signals work.

In K5 and K8, "(+7)" counts cases that were late and were not judged, because their process or the machine stood still. They are not in the total.

| engine | server | hours | K2 | K3 | K5 | K6 | K7 | K8 | K9 | K10 | K11 |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
`)
	for _, g := range targetsOf(cells) {
		f, _ := figuresOf(cells, g)
		passed, looks := countOf(cells, g, "K2")
		of := func(name string) string { return sumOf(cells, g, name) }
		step := ""
		if f.TokensBack > 0 {
			step = fmt.Sprintf(", by %d", f.TokenStep)
		}
		fmt.Fprintf(b, "| %s | %s | %.2f | %s | %s%s | %s | %s%s | %s | %s | %s | %s | %s |\n", g.Name,
			serverOf(cells, g), f.Ran.Hours(), share(passed, looks), of("K3"), step, of("K5"), of("K6"), perHour(&f),
			of("K7"), of("K8"), of("K9"), of("K10"), of("K11"))
	}
}

// perHour is how often holds are lost without a fault, while one lock is held for an hour.
func perHour(f *check.Figures) string {
	hours := f.CalmHeld.Hours()
	switch {
	case hours == 0:
		return ""
	case f.FalseLosses == 0:
		return fmt.Sprintf(" in %.2f h (below %.2g/h)", hours, 3/hours)
	}
	return fmt.Sprintf(" in %.2f h (%.2g/h)", hours, float64(f.FalseLosses)/hours)
}

// sumOf adds up a check over an engine's runs.
func sumOf(cells []*cell, g *target.Target, name string) string {
	faults, of := countOf(cells, g, name)
	said := "–"
	if of > 0 || faults > 0 {
		said = fmt.Sprintf("%d of %d", faults, of)
	}
	if n := sparedOf(cells, g, name); n > 0 {
		said += fmt.Sprintf(" (+%d)", n)
	}
	return said
}

// sparedOf is how many cases of an engine's runs a check has not judged.
func sparedOf(cells []*cell, g *target.Target, name string) (n int) {
	for _, c := range cells {
		if c.Target != g || c.rep == nil {
			continue
		}
		if v := c.rep.Find(name); v != nil {
			n += v.Spared
		}
	}
	return n
}

// share is a count with what it proves: none of n excludes with 95 % certainty that the share is larger than three
// nths.
func share(faults, of int) string {
	switch {
	case of == 0 && faults == 0:
		return "–"
	case faults > 0:
		return fmt.Sprintf("%d of %d", faults, of)
	}
	return fmt.Sprintf("0 of %d (%.2g %%)", of, min(100, 300/float64(of)))
}

// countOf is how many cases were against a check's claim, and how many were looked at, in all of an engine's runs.
func countOf(cells []*cell, g *target.Target, name string) (faults, of int) {
	for _, c := range cells {
		if c.Target != g || c.rep == nil {
			continue
		}
		if v := c.rep.Find(name); v != nil {
			faults, of = faults+len(v.Faults), of+v.Of
		}
	}
	return faults, of
}

// serverOf is the version of an engine's servers.
func serverOf(cells []*cell, g *target.Target) string {
	for _, c := range cells {
		if c.Target == g && c.rep != nil && c.rep.About.Server != "" {
			return c.rep.About.Server
		}
	}
	return "–"
}

// commitsOf are the commits of interlock that were tortured: one, unless somebody committed meanwhile.
func commitsOf(cells []*cell) string {
	var all []string
	for _, c := range cells {
		if c.rep != nil && c.rep.About.Commit != "" && !slices.Contains(all, c.rep.About.Commit) {
			all = append(all, c.rep.About.Commit)
		}
	}
	if len(all) == 0 {
		return "not known"
	}
	return strings.Join(all, ", ")
}
