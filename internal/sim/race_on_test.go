//go:build race

package sim

// defaultSeeds is less under the race detector, which makes every run several times slower.
const defaultSeeds = 40

// crowdsInFull is off, because the race detector bears 8,000 goroutines.
const crowdsInFull = false
