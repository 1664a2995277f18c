//go:build unix

package servers

import "syscall"

// pause stops the process, or lets it go on.
func (p *process) pause(stop bool) error {
	if stop {
		return p.cmd.Process.Signal(syscall.SIGSTOP)
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}
