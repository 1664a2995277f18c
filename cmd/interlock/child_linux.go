// What only Linux offers to keep hold of the job's processes; see child.go.

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttributes makes the kernel kill the command when this process is killed, if the two are tied. The processes
// that the command has started get no such signal, and a command that changes its user is spared: the keeper kills
// those (keeper.go).
func childAttributes(tied bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if tied {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

// ownProgram is the path of this program. The link leads there also when an upgrade has replaced the file.
func ownProgram() string { return "/proc/self/exe" }

// sharedClock is a clock that all processes read alike, and that goes on while the machine is suspended.
func sharedClock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // it is always there
	return time.Duration(t.Nano())
}

// membersOf returns the processes of a group that can still do something: zombies cannot, and a container's first
// process may leave them there.
func membersOf(group int) (living []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is right
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// The fields behind the name, which is in parentheses and may have some itself: state, parent, group.
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) < 3 || fields[2] != itoa(group) || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			living = append(living, pid)
		}
	}
	if len(living) == 0 && hidesOthers() && errors.Is(syscall.Kill(-group, 0), syscall.EPERM) {
		return []int{group} // somebody is there, of another user
	}
	return living
}

// hidesOthers reports whether /proc shows this user its own processes alone (hidepid, ProtectProc).
func hidesOthers() bool {
	_, err := os.Stat("/proc/1")
	return err != nil
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
