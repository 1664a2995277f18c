//go:build race

package handoff

// underRace says that the race detector is on. A search is one goroutine, so there is little to detect, and it is
// slower by a factor of five to ten: the bounds of the sound protocol are then smaller.
const underRace = true
