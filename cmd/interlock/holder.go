// Holders on this machine: their processes, and locks that outlived them. break.go and lock.go use it for advice. No
// command here sends a signal to such a process.

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// localPid returns the process behind a client name such as host:pid, if that is on this machine. The id stands after
// the last colon.
//
// A container mostly has a host name of its own; processHere tells those apart that share ours. Two machines of one
// name cannot be told apart.
func localPid(client string) (pid int, ok bool) {
	colon := strings.LastIndexByte(client, ':')
	host, err := os.Hostname()
	if err != nil || colon < 0 || client[:colon] != host {
		return 0, false
	}
	pid, err = strconv.Atoi(client[colon+1:])
	return pid, err == nil && pid > 0
}

// hasEnded reports whether no process has this id. One of another user (EPERM) has not ended. The kernel may have given
// the id to another process since. So interlock only names it, and a person decides.
func hasEnded(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// adviseKill names the process to end, on engines where that is the way to free a lock.
//
// Such an engine is files: the lock ends with its process, and only then.
func (e *engine) adviseKill(h driver.Holder) string {
	pid, ok := localPid(h.Client)
	if !ok {
		return ""
	}
	switch here := processHere(pid, e.url.Path); here {
	case 0:
		return "; " + e.orphaned(pid)
	case pid:
		return fmt.Sprintf(" (here: kill %d)", pid)
	default:
		return fmt.Sprintf(" (here: kill %d, which is process %d of a container)", here, pid)
	}
}

// orphaned explains a lock whose holder is not found here. That happens on engines whose holds end with the last
// process that has inherited them.
func (e *engine) orphaned(pid int) string {
	// The id belongs to another process meanwhile, or to a container whose processes this user may not see.
	if !hasEnded(pid) {
		return fmt.Sprintf("process %d of this machine does not have the lock: it is that of a container, or what the "+
			"holder started has the lock still; fuser -v %s/* names it", pid, e.url.Path)
	}
	return fmt.Sprintf("process %d has ended, but something that it started still has the lock: fuser -v %s/* names it",
		pid, e.url.Path)
}

// tellOrphaned says so if that is why a lock is held: the name of a dead process alone would puzzle the reader.
func (a *app) tellOrphaned(e *engine, held *interlock.HeldError) {
	if pid, ok := localPid(held.Client); ok && a.output == text && e.driver.Traits().Lifetime == driver.Process &&
		processHere(pid, e.url.Path) == 0 {
		a.say("%s", e.orphaned(pid))
	}
}
