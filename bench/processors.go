package main

import (
	"fmt"
	"strconv"
	"strings"
)

// processors is what a virtual machine's processors have done since it began, in the system's ticks.
type processors struct{ worked, lent float64 }

// Columns of the first line of /proc/stat; see proc_stat(5).
const (
	idleColumn   = 3
	waitsColumn  = 4 // idle too
	stolenColumn = 7
)

// readProcessors returns zeros where the system does not tell.
func readProcessors() processors { return parseProcessors(line("/proc/stat")) }

func parseProcessors(text string) (p processors) {
	name, rest, _ := strings.Cut(text, " ")
	columns := strings.Fields(rest)
	if name != "cpu" || len(columns) <= stolenColumn {
		return processors{}
	}
	for i, c := range columns[:stolenColumn+1] { // the others are counted in these
		n, err := strconv.ParseFloat(c, 64)
		if err != nil {
			return processors{}
		}
		switch i {
		case idleColumn, waitsColumn:
		case stolenColumn:
			p.lent = n
		default:
			p.worked += n
		}
	}
	return p
}

// stolen says how much of the time in which something was to run the machine's host gave to others, from p to now: numbers
// from a machine of which much was stolen are worse than its own, above all those of two processes that take turns.
func (p processors) stolen(now processors) string {
	worked, stolen := now.worked-p.worked, now.lent-p.lent
	if worked <= 0 {
		return ""
	}
	return fmt.Sprintf(" Of the time of its processors that was wanted, others on its host had %.1f %%.", 100*stolen/(worked+stolen))
}
