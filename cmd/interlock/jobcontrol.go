// Job control: what ^Z, fg and bg of a shell do to a job and to this process. The command has a process group of its
// own, so the shell sees this process alone, which has to stop and continue with the command. job.go comes here with
// each stop and each SIGCONT; terminal.go has the terminal. Without it ^Z would stop the command alone: the shell would
// go on waiting for this process, and the user would have a terminal that answers nothing.

package main

import (
	"syscall"
	"time"
)

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
