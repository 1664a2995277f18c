//go:build unix

package childproc

import (
	"os"
	"syscall"
)

// Suspend is [Process.Suspend] for a process that somebody else has started.
func Suspend(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	awaitStill(p.Pid)
	return nil
}

// Resume lets such a process go on.
func Resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
