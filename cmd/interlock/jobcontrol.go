package main

import (
	"syscall"
	"time"
)

// Job control: what ^Z, fg and bg of a shell do to a job and to us. The command has a process group of its own, so the
// shell sees only us, and we have to stop and continue with it.

// stopped takes in that the command was stopped by sig.
func (j *job) stopped(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTTIN, syscall.SIGTTOU:
		if j.tty.isForeground(j.tty.group()) {
			// It reaches for the terminal, which is ours to give: a job that did not get it at once, in a pipeline.
			j.tty.give(j.child.pid)
			j.child.signal(syscall.SIGCONT)
			return
		}
		j.usesTTY = true
	case syscall.SIGTSTP:
	default:
		return // SIGSTOP: somebody wants the command to pause. We go on renewing the lock.
	}
	j.suspend()
}

// suspend stops us together with the command, so that the shell gets its prompt. Nothing renews the lock then; resume
// looks whether it is still there.
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
	j.resumeAt = time.Now() // nobody sends a SIGCONT if we could not be stopped
}

// resume continues the command, unless the lock was lost meanwhile: the loss is then handled while it still stands
// still.
func (j *job) resume() {
	j.resumeAt = time.Time{}
	if j.exited || (j.hold.Err() != nil && !j.ignoreLoss) {
		return
	}
	if j.usesTTY && j.tty.isForeground(j.tty.group()) { // continued by fg, not by bg
		j.tty.give(j.child.pid)
	}
	j.child.signal(syscall.SIGCONT)
}
