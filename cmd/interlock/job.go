// The job: a command that runs while a lock is held, and is ended in time if the lock is not kept. stage.go makes one
// after the grant; budget.go has its times, child.go the process group, jobcontrol.go what a shell's ^Z and fg do.
// Everything here runs in the goroutine of run. job_start.go starts it, and job_end.go ends it because of the lock.

package main

import (
	"io"
	"os"
	"syscall"
	"time"
)

// hold is what a job needs to know of its lock. A *interlock.Lease is one.
type hold interface {
	Lost() <-chan struct{}
	Err() error
	Deadline() time.Time
}

// job is a command that runs while a lock is held.
//
// It ends in one of these ways:
//
//   - The command ends. What is left of its process group is killed.
//   - A first INT or TERM comes. It is forwarded, and what is left after the grace is killed; a second one kills at
//     once. With a patient budget the grace begins when the command has ended.
//   - No renewal was confirmed for so long that only grace and margin are left. The group gets TERM, and KILL when only
//     the margin is left, so that nobody of it lives when the library's deadline comes, let alone the engine's.
//   - The lock is gone already, because it was broken or this machine was suspended. The group gets KILL at once: any
//     grace would be time in which another holder is inside.
type job struct {
	// What it is given. None of it changes while the job runs.
	hold       hold
	budget     budget
	ignoreLoss bool // --on-lost=ignore
	signals    *signals
	say        func(form string, args ...any)

	name      string // of the lock
	path      string
	argv, env []string
	lends     func() (*os.File, error) // nil if the command inherits no lock; then it has a keeper
	connected bool                     // the lock ends with a connection, whose sockets the keeper holds too
	orphans   bool                     // see child

	// What runs; tty and keeper may be nil.
	child  *child
	tty    *terminal
	keeper *keeper
	stderr uintptr // for keepers

	// All of these belong to supervise. They are instants and counts in place of timers and goroutines, so that the
	// whole state can be read at one place, and nextLook finds what is due first.
	asked    int                // how many INT and TERM have come
	killAt   time.Time          // when the group is killed; zero if it need not be
	killed   bool               // the group was killed, which is never taken back
	giveUpAt time.Time          // when to stop waiting for a killed group; see kill
	lost     bool               // the command was ended because of the lock
	refused  bool               // a signal was, and that was told
	unkilled string             // who could not be killed, in words
	status   syscall.WaitStatus // how the command ended, once exited
	exited   bool               // the command has ended; its group may not have
	keepers  int                // how many were started
	keptTill time.Time          // what the keeper was told last; zero if nothing
	tellAt   time.Time          // when to tell it again, if the lock can run out
	resumeAt time.Time          // when to continue it if no SIGCONT comes; zero if it is not suspended
	usesTTY  bool               // it had the terminal, or wanted it, when it was suspended
}

// jobEnd is how a job ended.
type jobEnd struct {
	status   syscall.WaitStatus
	lost     bool
	unkilled string // whoever could not be killed and works on, or did after the loss; "" if nobody
}

// code is the exit code that a shell would show. It is 130 after INT, 143 after TERM and 137 after KILL, so a script
// sees no difference to the command alone.
func (e jobEnd) code() int {
	if e.status.Signaled() {
		return exitSignal + int(e.status.Signal())
	}
	return e.status.ExitStatus()
}

// run starts the command and returns when nobody of its group is left, or what is left cannot be killed. The streams
// must be files: the command gets them as they are. It returns the lock's error without starting anything if the lock
// is lost already.
func (j *job) run(stdin io.Reader, stdout, stderr io.Writer) (jobEnd, error) {
	if err := j.hold.Err(); err != nil { // lost between the grant and here
		return jobEnd{}, err
	}
	if err := j.start(stdin, stdout, stderr); err != nil {
		return jobEnd{}, err
	}
	defer j.tty.close()
	// Only now, because a lock that ends with a connection is not given back while the keeper has the sockets.
	defer func() { j.keeper.stop() }()
	defer j.child.stop()
	j.supervise()
	j.tty.takeBack(j.child.pid)
	return jobEnd{j.status, j.lost, j.unkilled}, nil
}

// supervise is the loop of a running job. It returns when the group is gone, or cannot be made to go.
//
// The select has no order among its cases, and needs none: each case only notes what has happened, or ends the job
// earlier. look asks the lock again before it acts on a timer that was set before a renewal.
func (j *job) supervise() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	lost := j.hold.Lost()
	for {
		j.tellKeeper(time.Now())
		// A timer of Go 1.23 and later delivers no stale tick after Reset or Stop.
		if at := j.nextLook(); at.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(at))
		}
		select {
		// The command has stopped or ended; its group may live on.
		case status := <-j.child.changes:
			j.changed(status)
		// Comes only after the command's own end was read from changes: watch sends that first, and nobody else closes
		// gone.
		case <-j.child.gone:
			return
		// From the user, a service manager, or a shell. What comes while another case runs waits in the buffer.
		case sig := <-j.signals.ch:
			j.forward(sig.(syscall.Signal))
		case <-lost:
			lost = nil // a closed channel would be chosen for ever
			j.lockLost()
		// Killed; nothing else ends it.
		case <-j.keeper.ended():
			j.keepAgain()
		// The lock runs out, a grace is over, or a killed group has had its second.
		case <-timer.C:
			if j.look(time.Now()) {
				j.giveUp()
				return
			}
		}
	}
}

// nextLook is the next instant at which something is due even if nothing happens; zero if there is none. It is asked in
// each turn of the loop, because a renewal moves termAt.
func (j *job) nextLook() time.Time {
	var next time.Time
	for _, at := range []time.Time{j.termAt(), j.killAt, j.giveUpAt, j.resumeAt, j.tellAt} {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// look does what is due. It reports whether to stop waiting.
func (j *job) look(now time.Time) (giveUp bool) {
	due := func(at time.Time) bool { return !at.IsZero() && !now.Before(at) }
	// A lock that is gone leaves no time for a grace, so Err is asked first.
	if due(j.termAt()) { // asked again: the deadline may have moved since the timer was set
		if j.hold.Err() != nil {
			j.lockLost()
		} else {
			j.runningOut()
		}
	}
	if due(j.killAt) {
		j.kill()
	}
	if due(j.resumeAt) {
		j.resume()
	}
	return due(j.giveUpAt)
}

// changed takes in that the command has stopped or ended.
//
// What is left of the group when the command has ended is killed, where flock leaves it alone: the lock is about to be
// given back, and those processes would work on beside the next holder. Daemons leave the group by setsid, and are not
// touched.
func (j *job) changed(status syscall.WaitStatus) {
	if status.Stopped() {
		j.stopped(status.StopSignal())
		return
	}
	j.status, j.exited, j.resumeAt = status, true, time.Time{}
	j.tty.takeBack(j.child.pid)
	switch {
	case j.killed: // whoever is left is killed already; kill also bounds the wait for them
		j.kill()
	case !j.killAt.IsZero(): // the group is ending, and its members have the same grace as the command had
	case j.asked == 1 && j.budget.patient:
		j.killBy(time.Now().Add(j.budget.grace))
	default:
		j.kill() // whoever is left would run on without the lock
	}
}

// forward passes a signal on to the group. INT and TERM also start the grace.
//
// They go to the group and not to the command alone: a shell that waits for its own child acts on a signal only when
// that child has ended. The other signals are the command's business, and start no grace. HUP and QUIT are among them;
// most commands end by them at once.
func (j *job) forward(sig syscall.Signal) {
	switch sig {
	// It may also come while nothing is stopped, and then does no harm.
	case syscall.SIGCONT:
		j.resume()
		return
	case syscall.SIGINT, syscall.SIGTERM:
		j.asked++
		if j.asked > 1 {
			j.say("%s again: the command is killed", signalName(sig))
			j.kill()
			return
		}
		if !j.budget.patient {
			j.killBy(time.Now().Add(j.budget.grace))
		}
	}
	_ = j.signal(sig) // it was told
	switch sig {
	// A process that was stopped would not notice them, and only a second TERM would end it.
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		_ = j.signal(syscall.SIGCONT)
	}
}

// signal signals the group. That it may not is told once: it is the user who has to end the job then.
func (j *job) signal(sig syscall.Signal) error {
	err := j.child.signal(sig)
	if err == nil || j.exited || j.refused { // who is left after the command's end is told by giveUp
		return err
	}
	j.refused = true
	j.say("warning: %s does not reach the command, which belongs to another user: %v", signalName(sig), err)
	return err
}
