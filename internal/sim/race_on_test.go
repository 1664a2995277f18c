//go:build race

package sim

import "runtime"

// One processor for all goroutines of a run: they take turns in any case, and what happens before what is judged as well.
// With several, Go 1.26's race detector shares one context between the timers of a bubble that fire at the same moment,
// and has crashed in it (SIGSEGV in __tsan::SlotLock, below runtime.maybeRunChan).
func init() { runtime.GOMAXPROCS(1) }

// The race detector makes every run several times slower. It watches a few of those that make simulate makes, and does
// not ask whether everything has happened in them: that takes allSeeds.
const allSeeds = 40

const defaultSeeds, quietSeeds = 15, uint64(5)

// crowdsInFull is off, because the race detector bears 8,000 goroutines.
const crowdsInFull = false
