//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// rerunVar names the test that a child process is to run.
const rerunVar = "INTERLOCK_FILELOCK_RERUN"

// rerun runs body in a process of its own, made with attr, because body changes something of its process.
func rerun(t *testing.T, attr *syscall.SysProcAttr, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(rerunVar) == t.Name() {
		body(t)
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), rerunVar+"="+t.Name())
	c.SysProcAttr = attr
	out, err := c.CombinedOutput()
	var ran *exec.ExitError
	if err != nil && !errors.As(err, &ran) {
		skip(t, "this machine does not allow it: "+err.Error())
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
