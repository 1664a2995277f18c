package childproc

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// dieWithUs has the process killed when this one ends, also without its clean-ups, and also while it is suspended.
func dieWithUs(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// stillTime bounds awaitStill. A thread that waits for a disk stands still when the disk has answered.
const stillTime = 5 * time.Second

// awaitStill returns when a process that was told to stop has stopped: the signal reaches one thread after the other,
// and those that run go on for a moment.
func awaitStill(pid int) {
	for end := time.Now().Add(stillTime); !stands(pid) && time.Now().Before(end); {
		time.Sleep(100 * time.Microsecond)
	}
}

// stands reports whether no thread of a process runs, or there is no such process.
func stands(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return true
	}
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if err != nil { // it has ended
			continue
		}
		// The state is behind the name, which is in parentheses and may have some itself.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) == 0 || !bytes.ContainsAny(fields[0], "TtZX") {
			return false
		}
	}
	return true
}

// doing tells the state of a process in the words of the system, and where in the kernel it waits if it may be known.
func doing(pid int) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "is gone"
	}
	_, state, _ := bytes.Cut(status, []byte("State:\t"))
	state, _, _ = bytes.Cut(state, []byte("\n"))
	waits, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
	if err != nil {
		return string(state)
	}
	return string(state) + " in " + string(waits)
}
