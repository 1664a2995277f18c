//go:build race

package sim

// defaultSeeds is less under the race detector, which makes every run several times slower.
const defaultSeeds = 40
