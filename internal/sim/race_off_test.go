//go:build !race

package sim

// defaultSeeds is how many runs fit into some ten seconds on two busy cores.
const defaultSeeds = 120
