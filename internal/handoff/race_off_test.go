//go:build !race

package handoff

// underRace says that the race detector is on.
const underRace = false
