// What only Linux offers to keep hold of the job's processes; see child.go.

package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes makes the kernel kill the command when this process is killed: nobody else would end it when the lock
// is lost.
//
// The processes that the command has started get no such signal; they hold the inherited lock instead, on files
// (testdata/script/killed.txtar).
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes this process the parent of processes that the command leaves behind. The first process of a
// container often waits for nobody: dead members of the group would stay in it as zombies, and it would never look
// empty.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // after an error only the wait for a killed group is longer
}

// ignoredSignals are those that this process ignores. The kernel is asked, because Go's runtime knows only the signals
// that it was told to ignore, and HUP and INT if they were ignored at the start.
//
// /proc says it for all signals at once; neither syscall nor x/sys has sigaction(2), which would say it for one.
func ignoredSignals() signalSet {
	status, _ := os.ReadFile("/proc/self/status") // after an error none are known
	_, line, _ := bytes.Cut(status, []byte("\nSigIgn:\t"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	set, _ := strconv.ParseUint(string(line), 16, 64)
	return signalSet(set)
}
