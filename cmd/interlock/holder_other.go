//go:build unix && !linux

package main

// processHere returns pid if there is such a process: only Linux has containers that count by themselves.
func processHere(pid int, _ string) int {
	if hasEnded(pid) {
		return 0
	}
	return pid
}
