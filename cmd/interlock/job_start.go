// The start of a job. The order matters: the streams, the lock's file, the terminal, the signals, the process.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

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
// last instant is over, which lies behind those at which this process ends the job itself (budget.go).
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
