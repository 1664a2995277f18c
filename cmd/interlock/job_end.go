// How a job is ended because of its lock. There are two causes, and they leave the command different times: a lock that
// runs out, as renewals fail, leaves the grace; one that is gone leaves none. budget.go has the arithmetic, job.go the
// loop that comes here.

package main

import (
	"fmt"
	"syscall"
	"time"
)

// termAt is when the group gets TERM unless a renewal is confirmed before. It is zero on engines whose holds cannot run
// out, and when the job is already being ended because of its lock.
//
// It is not kept, because each renewal moves the deadline: an instant that was stored would end a job whose lock was
// renewed in the meantime.
func (j *job) termAt() time.Time {
	deadline := j.hold.Deadline()
	if deadline.IsZero() || j.lost || j.ignoreLoss {
		return time.Time{}
	}
	return deadline.Add(-j.budget.margin - j.budget.grace)
}

// runningOut ends the job because the lock cannot be trusted for longer than the end of the job takes.
func (j *job) runningOut() {
	j.lost = true
	deadline := j.hold.Deadline()
	j.say("the lock could not be renewed and runs out in %s: the command gets SIGTERM, and SIGKILL %s later",
		short(time.Until(deadline)), short(j.budget.grace))
	j.killBy(deadline.Add(-j.budget.margin))
	_ = j.signal(syscall.SIGTERM) // an error was told
	_ = j.signal(syscall.SIGCONT) // whoever was stopped would not notice TERM
}

// lockLost ends the job because the lock is gone. If the job is being ended anyway, only the grace is cut.
//
// The kill may meet the command in the middle of a write. But another owner may be writing by now, and two writers are
// what the lock must prevent. --on-lost=ignore is for commands whose writes are fenced, or do no harm.
func (j *job) lockLost() {
	if j.ignoreLoss {
		j.say("warning: the command goes on without its lock (--on-lost=ignore): %s", message(j.hold.Err()))
		return
	}
	if !j.lost {
		j.say("%s: the command is killed", message(j.hold.Err()))
	}
	j.lost = true
	j.kill()
}

// killBy sets the latest instant at which the group is killed. An earlier one stays, and so does a kill that was sent.
// So a second cause never gives the group more time than the first.
func (j *job) killBy(at time.Time) {
	if !j.killed && (j.killAt.IsZero() || at.Before(j.killAt)) {
		j.killAt = at
	}
}

// kill kills the group. Killed processes can still be seen: as zombies, of which a container's first process takes no
// notice, or stuck in the kernel. So once the command itself has ended, the wait for the others is bounded to a second.
func (j *job) kill() {
	j.killed, j.killAt = true, time.Time{}
	err := j.signal(syscall.SIGKILL)
	switch {
	case j.exited:
		j.giveUpAt = time.Now().Add(time.Second)
	// It was not killed, so there is no end of it to wait a second for. It is waited for as long as it takes.
	case err != nil && j.lost:
		j.unkilled = "the command could not be killed and worked on until its own end"
	}
}

// giveUp notes who of a killed group still works. They belong to another user, or stand still in the kernel.
func (j *job) giveUp() {
	if left := membersOf(j.child.pid); len(left) > 0 {
		j.unkilled = fmt.Sprintf("what the command left behind could not be killed and works on (processes %v)", left)
	}
}
