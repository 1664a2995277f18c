package servers

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the server killed when the test's process ends without its cleanups, as after its time limit.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
