//go:build race

package sim

// The race detector makes every run several times slower. It watches a few of those that make simulate makes, and does
// not ask whether everything has happened in them: that takes allSeeds.
const allSeeds = 40

const defaultSeeds, quietSeeds = 15, uint64(5)

// crowdsInFull is off, because the race detector bears 8,000 goroutines.
const crowdsInFull = false
