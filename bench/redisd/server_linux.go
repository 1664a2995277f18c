package redisd

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the server killed when this process ends without closing it, as after kill -9.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
