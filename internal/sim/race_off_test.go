//go:build !race

package sim

// defaultSeeds is how many runs fit into some ten seconds on two busy cores.
const defaultSeeds = 120

// crowdsInFull lets a long run simulate crowds of 10,000 clients.
const crowdsInFull = true
