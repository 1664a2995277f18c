//go:build !linux

package distance

import "time"

// sleepExactly does nothing.
func sleepExactly() {}

// sleepUntil is late by as much as Go's timers are.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
