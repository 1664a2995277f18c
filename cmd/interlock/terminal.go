package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminal is our controlling terminal, and which process group may read from it: the foreground. nil means that there
// is none, and does nothing.
type terminal struct {
	fd  int
	own int // our process group
}

// openTerminal opens the controlling terminal, whatever stdin is.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd: fd, own: unix.Getpgrp()}
}

func (t *terminal) close() {
	if t != nil {
		_ = unix.Close(t.fd)
	}
}

// isForeground reports whether the foreground is group.
func (t *terminal) isForeground(group int) bool {
	if t == nil {
		return false
	}
	now, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && now == group
}

// give makes group the foreground. A terminal that has vanished is no concern of ours: its end is signalled by HUP.
func (t *terminal) give(group int) {
	if t != nil {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	}
}

// takeBack makes our own group the foreground if group is.
func (t *terminal) takeBack(group int) {
	if t.isForeground(group) {
		t.give(t.own)
	}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// interactive reports whether a job on these streams should get the terminal at once. In a pipeline it should not: the
// pager behind it needs the terminal too, so there the job gets it only when it reaches for it.
func (t *terminal) interactive(stdin io.Reader, stdout io.Writer) bool {
	return t.isForeground(t.group()) && isTerminal(stdin) && isTerminal(stdout)
}

// group is our process group.
func (t *terminal) group() int {
	if t == nil {
		return 0
	}
	return t.own
}
