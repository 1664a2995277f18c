//go:build !linux

package engined

// Children finds none: only Linux lists them.
func Children(int) []int { return nil }

// ownChildren finds none either.
func ownChildren() []int { return nil }
