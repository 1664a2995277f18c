package main

import (
	"fmt"
	"math"
	"time"
)

// units say what a number is called in a table, and how it is written.
var units = map[string]struct {
	head  string
	write func(float64) string
}{
	rate:            {"locks/s", thousands},
	perOp:           {"time", duration},
	p50:             {"p50", duration},
	p99:             {"p99", duration},
	worstShare:      {"worst share", number},
	jainIndex:       {"Jain index", number},
	clientCPU:       {"CPU, clients", cost},
	serverCPU:       {"CPU, server", cost},
	commands:        {"commands/lock", number},
	scriptTime:      {"server's time in scripts", cost},
	roundTrips:      {"round trips", number},
	inTrips:         {"round trips", number},
	waitingCommands: {"commands/s while one waits", number},
	perHerd:         {"all served after", duration},
	perGrant:        {"time for each", duration},
	commandsAGrant:  {"commands for each", number},
	unserved:        {"not served", number},
	commandsASecond: {"commands/s", number},
	bytesHeld:       {"bytes for each", thousands},
	serverBytes:     {"of the server", thousands},
	goroutinesHeld:  {"goroutines for each", number},
	lostHolds:       {"lost", number},
	missing:         {"never taken", number},
	freed:           {"free after", duration},
	clientShare:     {"CPU, client", percent},
	serverShare:     {"CPU, server", percent},

	failed:       {"failed", number},
	allIn:        {"all in after", duration},
	longestRun:   {"longest script", duration},
	bystanderP99: {"another lock's pair, p99", duration},
	beyond:       {"CPU, server, beyond silence", percent},
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

// thousands writes a number with its groups apart. It may be negative: a server gives memory back meanwhile.
func thousands(x float64) string {
	if x < 0 {
		return "-" + thousands(-x)
	}
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
	return number(100*x) + " %"
}

// number writes a number that may be small, with two digits or more.
func number(x float64) string {
	switch {
	case x >= 100:
		return thousands(x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x == 0:
		return "0"
	case x < 0.1:
		return fmt.Sprintf("%.2g", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}
