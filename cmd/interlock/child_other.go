//go:build unix && !linux

package main

import (
	"os/signal"
	"syscall"
)

// childAttributes makes a process group. Only Linux can also tie the command's life to ours.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adoptOrphans is for Linux; elsewhere the system's first process waits for them.
func adoptOrphans() {}

// ignoredSignals are those that Go's runtime has been asked to ignore: of those that matter to jobs it tells no others.
func ignoredSignals() (set signalSet) {
	for _, sig := range append([]syscall.Signal{syscall.SIGTTOU}, forJobs...) {
		if signal.Ignored(sig) {
			set |= 1 << (sig - 1)
		}
	}
	return set
}
