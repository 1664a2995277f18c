package play

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the process killed when this one ends without its clean-ups; one that stands still would stay.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
