//go:build !race

package run

// raced says that the clients are slowed down by the race detector.
const raced = false
