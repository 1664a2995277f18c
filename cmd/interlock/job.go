// The job: a command that runs while a lock is held, and is ended in time if the lock is not kept. run.go makes one
// after the grant; child.go has the process group, terminal.go what a shell's ^Z and fg do. Everything here runs in
// the goroutine of run. A lock that runs out, as renewals fail, leaves the command the grace; one that is gone leaves
// it none. The budget has the arithmetic.

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/driver"
	"golang.org/x/sys/unix"
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

// start starts the command, and before it the keeper, so that there is no moment without one. beforeJob comes before
// the start and jobStarted after it, because the command inherits which signals are ignored. The terminal is given to
// the command as part of the start, so that it never runs in the background for a moment.
func (j *job) start(stdin io.Reader, stdout, stderr io.Writer) error {
	streams, err := filesOf(stdin, stdout, stderr)
	if err != nil {
		return err
	}
	s := &launch{path: j.path, argv: j.argv, env: j.env, streams: streams, orphans: j.orphans}
	// With the file the lock is the command's too: if this process alone is killed, as by the kernel when memory runs
	// out, the command goes on, and the lock stays held until all that have inherited it have ended. Otherwise the
	// command must not outlive this process, which the keeper sees to.
	if j.lends != nil {
		if s.lent, err = j.lends(); err != nil {
			return fmt.Errorf("the lock's file cannot be handed to the command: %w", err)
		}
		defer s.lent.Close() // a copy here would keep the lock after the command
	} else if err := j.keep(streams[2].Fd()); err != nil {
		return err
	}
	s.keeper = j.keeper
	if !j.hold.Deadline().IsZero() && !j.ignoreLoss && changesUser(j.path) {
		j.say("warning: %s changes its user, so interlock may not be allowed to end it if the lock is lost; better "+
			"run interlock as that user", j.path)
	}
	j.tty = openTerminal()
	if j.tty.interactive(stdin, stdout) {
		s.foreground = j.tty
	}
	j.signals.beforeJob()
	if j.child, err = startChild(s); err != nil {
		j.keeper.stop()
		j.tty.close()
		return commandError(j.path, err)
	}
	j.signals.jobStarted()
	return nil
}

// keep starts a keeper, which knows of no group yet.
func (j *job) keep(stderr uintptr) (err error) {
	j.stderr = stderr
	// A client may close a socket between the list and the start, which then fails.
	for range 5 {
		var keeps []int
		if j.connected {
			keeps = sockets()
		}
		if j.keeper, err = startKeeper(j.name, keeps, stderr); !errors.Is(err, syscall.EBADF) {
			break
		}
	}
	if _, missing := os.Stat(ownProgram()); err != nil && missing != nil { // as without /proc
		err = fmt.Errorf("there is no %s; mount /proc, or keep the locks in files", ownProgram())
	}
	if err != nil {
		return exitWith(exitFailed, fmt.Errorf("the process that would end the command if interlock was killed cannot "+
			"be started: %w", err))
	}
	j.keepers++
	return nil
}

// maxKeepers bounds how many keepers are started for one job: whoever kills so many wants none.
const maxKeepers = 10

// keepAgain starts another keeper in place of one that was killed. Until it is there, this process alone ends the job
// in time; a second kill at this very moment has nobody to notice it.
func (j *job) keepAgain() {
	j.keeper.stop()
	j.keeper = nil
	err := errors.New("it was killed too often")
	if j.keepers < maxKeepers {
		err = j.keep(j.stderr)
	}
	if err != nil {
		j.say("warning: if interlock is killed, its command may now go on without the lock: %s", message(err))
		return
	}
	j.keeper.guards(j.child.pid)
	j.keptTill = time.Time{}
}

// tellKeeper tells the keeper how far the lock was renewed, at each pause between renewals. So it has news before the
// last instant is over, which lies behind those at which this process ends the job itself (job.go).
func (j *job) tellKeeper(now time.Time) {
	deadline := j.hold.Deadline()
	if j.keeper == nil || deadline.IsZero() || j.ignoreLoss {
		return
	}
	if at := deadline.Add(-j.budget.margin / 2); !at.Equal(j.keptTill) {
		j.keptTill = at
		j.keeper.until(at)
	}
	if !now.Before(j.tellAt) {
		j.tellAt = now.Add(j.budget.renewal)
	}
}

// changesUser reports whether a program runs as another user, whom this process may not signal. What a script or sudo
// starts later is not seen.
func changesUser(path string) bool {
	var st unix.Stat_t
	us := uint32(os.Geteuid())
	return us != 0 && unix.Stat(path, &st) == nil && st.Mode&unix.S_ISUID != 0 && st.Uid != us
}

// filesOf makes files of the streams, which they are except in tests. exec.Cmd would put a pipe and a goroutine between
// others and the command; then the command's stdout would be no terminal, and what it writes last could be lost when
// this process is killed.
func filesOf(stdin io.Reader, stdout, stderr io.Writer) (files [3]*os.File, err error) {
	for i, stream := range []any{stdin, stdout, stderr} {
		f, ok := stream.(*os.File)
		if !ok {
			return files, fmt.Errorf("stream %d is not a file that a command could inherit", i)
		}
		files[i] = f
	}
	return files, nil
}

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

// budget is the lease arithmetic of a run. When renewals stop being confirmed, this is the order of events, counted
// from the last confirmed one:
//
//	deadline - margin - grace   the job's group gets TERM
//	deadline - margin           the job's group gets KILL
//	deadline                    = lease - drift; the library stops trusting the lock
//	lease                       the engine gives the lock to somebody else
//
// A renewal that fails should have a second chance before the first of these, so two pauses between renewals have to
// fit in front of it.
type budget struct {
	lease   time.Duration // 0 on engines whose holds cannot run out
	renewal time.Duration // the pause between two renewals
	grace   time.Duration // between TERM and KILL
	drift   time.Duration // how much earlier than the lease the library stops trusting the lock
	margin  time.Duration // in which a KILL must have worked
	patient bool          // after INT or TERM the command may take any time; the grace is for what it leaves behind
}

const (
	// The largest grace that is chosen by itself, and the largest margin. A job that needs a longer grace asks for it
	// by --kill-grace.
	maxGrace  = 5 * time.Second
	maxMargin = 500 * time.Millisecond
)

// defaultGrace returns a grace with which the budget fits. Two pauses take two thirds of the lease, the margin a
// twentieth and the drift a hundredth; what is left beside a sixth covers the drift's 2 ms from a lease of 20 ms on.
func defaultGrace(lease time.Duration) time.Duration { return min(maxGrace, lease/6) }

// newBudget computes the parts that follow from lease and grace. The drift is the library's own allowance by which its
// deadline is earlier than the lease.
//
// A third of the lease, and the allowance of 1 % and 2 ms, are the library's (docs/rationale.md, The trust window and
// Renewal). They are repeated here because a job has to be ended before the library's own deadline and not at it.
func newBudget(lease, grace time.Duration) budget {
	return budget{
		lease:   lease,
		renewal: lease / 3,
		grace:   grace,
		drift:   lease/100 + 2*time.Millisecond,
		margin:  min(maxMargin, lease/20),
	}
}

// budget returns the budget for a run on this engine, or an error with the numbers if it does not fit. A hold that ends
// with the process cannot run out, so nothing has to fit there.
func (e *engine) budget(o *runOptions) (budget, error) {
	traits := e.driver.Traits()
	lease := o.lease
	switch traits.Lifetime {
	case driver.Process:
		if !o.graceGiven { // waiting loses nothing, and a KILL may spoil what the command is about to complete
			return budget{grace: maxGrace, patient: true}, nil
		}
		return budget{grace: o.grace}, nil
	case driver.Sessions:
		lease = traits.Timeout // what the server agreed to
	}
	b := newBudget(lease, o.grace)
	if o.onLost == "ignore" { // nothing is killed for a loss, so nothing has to fit
		return b, nil
	}
	return b, b.check()
}

// need is the shortest lease in which everything fits.
func (b budget) need() time.Duration { return 2*b.renewal + b.grace + b.drift + b.margin }

// check says with all numbers what does not fit. Nothing is adjusted in silence: a shorter grace might kill the job in
// the middle of a write, and a longer lease makes others wait.
func (b budget) check() error {
	if b.need() <= b.lease {
		return nil
	}
	return usage("the lease of %v is too short to end the job before it runs out: 2 x renewal %v + kill-grace %v + "+
		"drift %v + margin %v = %v; "+
		"lengthen --lease or shorten --kill-grace", b.lease, ms(b.renewal), b.grace, ms(b.drift), ms(b.margin),
		ms(b.need()))
}

// ms rounds for messages: a third of a lease may have nine decimals.
func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// lookCommand finds the file that the command names, as a shell would, with a shell's exit codes if it cannot.
//
// The file may vanish during the wait. Then the start fails, with the lock in hand, and giveBack releases it.
func lookCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) { // a PATH with a dot in it is the user's decision
		return "", commandError(name, err)
	}
	return path, nil
}

// commandError tells a command that is not there (127) from one that cannot be executed (126). Only a name that was
// looked for along PATH is "not found"; a path without a file may also be a script whose interpreter is missing, which
// the system reports in the same way.
//
// The text of the error names both causes, since the code cannot tell them apart.
func commandError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound) && !strings.Contains(name, "/"):
		return exitWith(exitNotFound, fmt.Errorf("%s: command not found", name))
	case errors.Is(err, fs.ErrNotExist):
		return exitWith(exitNotFound, fmt.Errorf("%s: no such file, or the program that its #! line names is missing",
			name))
	// A shell would run the file as a script of its own. interlock does not guess: it would have to choose the shell.
	case errors.Is(err, syscall.ENOEXEC):
		return exitWith(exitNotExecutable, fmt.Errorf("%s: not a program; a script needs a #! line", name))
	}
	// The system has no room for another process, or this one for another file. The command may be quite right.
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, shortage) {
			return exitWith(exitFailed, fmt.Errorf("%s: cannot be started: %w", name, shortage))
		}
	}
	// Its text repeats the name.
	var wrapped *exec.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return exitWith(exitNotExecutable, fmt.Errorf("%s: cannot be executed: %w", name, err))
}
