//go:build unix && !linux

// Unix systems other than Linux; see child_linux.go. If this process is killed there, only the keeper kills the command.

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// childAttributes makes a process group. Only Linux can also tie the command's life to this process.
func childAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ownProgram is the path of this program, or a path that cannot be started.
func ownProgram() string {
	path, _ := os.Executable()
	return path
}

// sharedClock is 0: package unix has no clock that counts on all of these systems, so keepers are told no instant.
func sharedClock() time.Duration { return 0 }

// membersOf returns the group's number if anybody of it is there: only Linux tells who. Zombies do not stay, since the
// system's first process waits for them.
func membersOf(group int) []int {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return nil
	}
	return []int{group}
}

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
