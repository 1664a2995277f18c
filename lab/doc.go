// Package lab has no code of its own. The exhibits are below exhibit, each broken on purpose; the program that shows
// them is cmd/interlock-lab, started by "interlock lab". docs/lab.md in the repository walks through them.
package lab
