//go:build race

package sim

import "github.com/interlock-go/interlock/internal/longrun"

// The race detector makes every run several times slower, so there are fewer: allSeeds are enough that everything
// happens, and the usual run does with less. make simulate makes them all without the race detector.
const allSeeds = 40

var defaultSeeds, quietSeeds = longrun.Of(15, allSeeds), longrun.Of[uint64](5, 10)

// crowdsInFull is off, because the race detector bears 8,000 goroutines.
const crowdsInFull = false
