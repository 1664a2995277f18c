// The controlling terminal of the process: which process group may read from it. job_start.go gives it to a job,
// jobcontrol.go takes it back and gives it again. It is opened by the name /dev/tty, because any of the three standard
// streams may be a file or a pipe while the job still reads a password from the terminal.

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal is our controlling terminal. The process group that may read from it is its foreground. A nil terminal means
// that there is none, and all methods do nothing then.
type terminal struct {
	fd  int // of /dev/tty
	own int // our process group
}

// openTerminal opens the controlling terminal, whatever stdin is.
//
// Without a terminal, as under cron and systemd, nothing is given, and that is no error.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd, own: unix.Getpgrp()}
}

// close gives up the descriptor. The terminal itself stays as it is.
func (t *terminal) close() {
	if t != nil {
		_ = unix.Close(t.fd)
	}
}

// isForeground reports whether group is the foreground.
func (t *terminal) isForeground(group int) bool {
	if t == nil {
		return false
	}
	now, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && now == group
}

// give makes group the foreground. If the terminal has vanished, HUP tells of that, so the error is dropped.
func (t *terminal) give(group int) {
	if t != nil {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	}
}

// takeBack makes our own group the foreground if group is. If the shell has taken the terminal meanwhile, it keeps it.
//
// A shell takes the terminal when this process is stopped or moved to the background. Taking it from the shell would
// stop the shell.
func (t *terminal) takeBack(group int) {
	if t.isForeground(group) {
		t.give(t.own)
	}
}

// isTerminal reports whether a stream is a terminal. A window size is asked for and not the settings, because that call
// has one name on all systems.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// interactive reports whether a job on these streams should get the terminal at once. In a pipeline it should not: the
// pager behind it needs the terminal too, so there the job gets it only when it reads from it.
//
// In "interlock run x -- generate | less" this process and less are one group. If the command took the foreground, less
// would be stopped when it reads keys.
func (t *terminal) interactive(stdin io.Reader, stdout io.Writer) bool {
	return t.isForeground(t.group()) && isTerminal(stdin) && isTerminal(stdout)
}

// group is our process group, or 0 without a terminal.
func (t *terminal) group() int {
	if t == nil {
		return 0
	}
	return t.own
}
