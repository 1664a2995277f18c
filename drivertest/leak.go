package drivertest

import (
	"runtime"
	"strings"
	"time"
)

// Goroutines that a driver leaves behind count as failures, so they are compared before and after each behaviour.

// leakPatience is how long goroutines may take to end after everything was closed, on a machine that may stand still
// meanwhile.
const leakPatience = 15 * time.Second

// checkLeaks fails tb at its end if goroutines run that did not run at the call. Goroutines whose stack contains one of
// keeps do not count.
func checkLeaks(tb tester, keeps []string) {
	before := goroutines()
	tb.Cleanup(func() {
		tb.Helper()
		var left []string
		// A goroutine that was told to end needs a moment, and nothing says when it is gone.
		for end := time.Now().Add(leakPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if left = started(before, keeps); len(left) == 0 {
				return
			}
		}
		tb.Errorf("%d goroutines are left after everything was closed:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// started returns the stacks of the goroutines that are not in before.
func started(before map[string]string, keeps []string) []string {
	var left []string
	for id, stack := range goroutines() {
		if _, old := before[id]; !old && !kept(stack, keeps) {
			left = append(left, stack)
		}
	}
	return left
}

// kept reports whether stack contains one of keeps.
func kept(stack string, keeps []string) bool {
	for _, k := range keeps {
		if strings.Contains(stack, k) {
			return true
		}
	}
	return false
}

// goroutines returns the stacks of all goroutines but this one and those of package testing, by "goroutine N".
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	stacks := strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")
	all := make(map[string]string, len(stacks))
	for _, stack := range stacks[1:] { // the first is this one
		id, _, _ := strings.Cut(stack, " [")
		if !kept(stack,
			[]string{"testing.(*T).Run(", "testing.runTests(", "os/signal.loop(", "testing.(*M).startAlarm"}) {
			all[id] = stack
		}
	}
	return all
}
