// The controlling terminal, and job control: what ^Z, fg and bg of a shell do to a job and to this process. The
// command has a process group of its own, so the shell sees this process alone, which has to stop and continue with
// the command. Otherwise the shell would go on waiting for this process, and the user would have a terminal that
// answers nothing. The terminal is opened by the name /dev/tty, because any of the three standard streams may be a
// file or a pipe while the job still reads a password from the terminal.

package main

import (
	"io"
	"os"
	"syscall"
	"time"

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

// stopped takes in that the command was stopped by sig.
//
// TTIN and TTOU come from the kernel to a group in the background that uses the terminal. TSTP comes from ^Z, or is
// what the command does to itself, as an editor does. STOP comes from another process that wants the command to pause,
// so the shell gets no prompt.
func (j *job) stopped(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		if j.tty.isForeground(j.tty.group()) {
			// The command reads or sets the terminal, which is ours to give: it did not get it at the start, as in a
			// pipeline.
			j.tty.give(j.child.pid)
			_ = j.signal(syscall.SIGCONT)
			return
		}
		j.usesTTY = true
	case syscall.SIGTSTP:
	default:
		return // SIGSTOP: somebody wants the command to pause. The lock is still renewed.
	}
	j.suspend()
}

// suspend stops this process together with the command, so that the shell gets its prompt. Nothing renews the lock
// meanwhile, which is said before; resume looks whether it is still there.
//
// The terminal is taken back before this process stops, because the shell does not know the command's group. On files
// nothing is said, since such a lock needs no renewal.
func (j *job) suspend() {
	if deadline := j.hold.Deadline(); !deadline.IsZero() && !j.ignoreLoss {
		j.say("stopped, and the lock is not renewed meanwhile: continue within %s, or the command will be killed",
			short(time.Until(j.termAt())))
	}
	if j.tty.isForeground(j.child.pid) {
		j.usesTTY = true
		j.tty.takeBack(j.child.pid)
	}
	stopOurselves()
	j.resumeAt = time.Now() // if we could not be stopped nobody sends a SIGCONT
}

// resume continues the command, unless the lock was lost meanwhile: then the loss is handled while the command still
// stands, and it never runs without the lock.
//
// The monotonic clock of Linux stops while the machine sleeps, but not while this process is stopped. So after a long
// ^Z the deadline is over, and Err says it before the command runs a single instruction.
func (j *job) resume() {
	j.resumeAt = time.Time{}
	if j.exited || (j.hold.Err() != nil && !j.ignoreLoss) {
		return
	}
	if j.usesTTY && j.tty.isForeground(j.tty.group()) { // continued by fg, not by bg
		j.tty.give(j.child.pid)
	}
	_ = j.signal(syscall.SIGCONT)
}
