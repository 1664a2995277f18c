package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes makes the kernel kill the command when we are killed: without us nobody would end it when the lock is
// lost.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes us the parent of the command's children when it leaves them behind. The first process of a
// container often waits for nobody: dead members of the group would stay in it as zombies, and it would never look
// empty.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it only the wait for a killed group is longer
}

// ignoredSignals are those that this process ignores. Go's runtime tells only what it has been asked to ignore, and HUP
// and INT if whoever started us ignored them.
func ignoredSignals() signalSet {
	status, _ := os.ReadFile("/proc/self/status") // without it none are known
	_, line, _ := bytes.Cut(status, []byte("\nSigIgn:\t"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	set, _ := strconv.ParseUint(string(line), 16, 64)
	return signalSet(set)
}
