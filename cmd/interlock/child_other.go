//go:build unix && !linux

// Unix systems other than Linux; see child_linux.go. If this process is killed there, the command runs on. On files it
// has inherited the lock; on other engines it would then work on after the lock was lost.

package main

import (
	"os/signal"
	"syscall"
)

// childAttributes makes a process group. Only Linux can also tie the command's life to this process.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adoptOrphans does nothing: the system's first process waits for orphans.
func adoptOrphans() {}

// ignoredSignals are those that Go's runtime knows to be ignored. It does not know of others that were ignored before
// this process began.
func ignoredSignals() (set signalSet) {
	for _, sig := range append([]syscall.Signal{syscall.SIGTTOU}, forJobs...) {
		if signal.Ignored(sig) {
			set |= 1 << (sig - 1)
		}
	}
	return set
}
