package main

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes makes the kernel kill the command when we are killed: without us nobody would end it when the lock is
// lost.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes us the parent of the command's children when it leaves them behind. The first process of a container
// often waits for nobody: dead members of the group would stay in it as zombies, and it would never look empty.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it only the wait for a killed group is longer
}
