package main

import (
	"fmt"
	"strconv"
	"strings"
)

// processorTime is what a virtual machine's processors have done since the machine started, in the system's ticks.
type processorTime struct{ worked, stolen float64 }

// Columns of the first line of /proc/stat; see proc_stat(5).
const (
	idleColumn   = 3
	ioWaitColumn = 4 // idle too
	stolenColumn = 7
)

// readProcessors returns zeros where the system does not tell.
func readProcessors() processorTime { return parseProcessors(firstLine("/proc/stat")) }

func parseProcessors(text string) (p processorTime) {
	name, rest, _ := strings.Cut(text, " ")
	columns := strings.Fields(rest)
	if name != "cpu" || len(columns) <= stolenColumn {
		return processorTime{}
	}
	for i, c := range columns[:stolenColumn+1] { // time of guests is counted in that of users
		n, err := strconv.ParseFloat(c, 64)
		if err != nil {
			return processorTime{}
		}
		switch i {
		case idleColumn, ioWaitColumn:
		case stolenColumn:
			p.stolen = n
		default:
			p.worked += n
		}
	}
	return p
}

// stolenUntil says how much of the time in which something was to run the machine's host gave to others.
func (p processorTime) stolenUntil(now processorTime) string {
	worked, stolen := now.worked-p.worked, now.stolen-p.stolen
	if worked <= 0 || stolen < 0 || now.stolen == 0 { // most hosts of virtual machines tell of some if they tell
		return ""
	}
	return fmt.Sprintf(" Steal: %.1f %% of the processor time that was wanted went to others on the host.",
		100*stolen/(worked+stolen))
}
