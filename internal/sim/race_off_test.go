//go:build !race

package sim

// allSeeds is how many runs fit into some ten seconds on two busy cores, and enough that everything happens.
const allSeeds = 120

const defaultSeeds, quietSeeds = allSeeds, uint64(10)

// crowdsInFull lets a long run simulate crowds of 10,000 clients.
const crowdsInFull = true
