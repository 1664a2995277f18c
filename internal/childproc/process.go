// Package childproc starts programs that live no longer than this one. It kills, suspends and resumes them, says how
// they ended, and talks over pipes with those that are this program once more ([Self], [Serve]).
//
// On Linux the system kills such a process when this one ends, however that happens. Elsewhere a process learns it only
// from the end of its standard input, so it has to read that.
package childproc

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// leftOpen is how long the output of a process that has ended is read on. Its own children may have inherited it and
// live on.
const leftOpen = time.Second

// Process is one that was started. Its methods may be called from several goroutines.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and was waited for
	err    error         // how it ended, once exited is closed

	suspending sync.Mutex // held while it is suspended or resumed, so that suspended is what was done last
	suspended  atomic.Bool
}

// Start starts cmd. The process is killed when the context of cmd ends, if it has one, and on Linux when this process
// does.
//
// A nil launch is [exec.Cmd.Start]. Another one may start cmd from a thread of its own, which must then last as long as
// the process: Linux kills the process when the thread that started it ends.
func Start(cmd *exec.Cmd, launch func(*exec.Cmd) error) (*Process, error) {
	if launch == nil {
		launch = (*exec.Cmd).Start
	}
	dieWithUs(cmd)
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = leftOpen
	}
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the process
		// Linux counts the end of the thread that started a process as the parent's, and Go ends threads that a
		// goroutine has locked. So this thread is kept, which costs nothing: one has to wait for the process anyway.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := launch(cmd)
		started <- err
		if err == nil {
			p.err = ownEnd(cmd.Wait())
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// ownEnd is how the process itself ended: what its children kept open says nothing of it.
func ownEnd(err error) error {
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has ended and was waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Err waits for the end of the process. It returns nil after exit status 0, and otherwise what [exec.Cmd.Wait] does.
func (p *Process) Err() error {
	<-p.exited
	return p.err
}

// Kill ends the process as kill -9 does, also one that is suspended, and returns when it is gone. It may be called more
// than once.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended by itself
	<-p.exited
}

// Signal sends the process a signal. It fails with [os.ErrProcessDone] if the process has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Suspend makes the process stand still, as SIGSTOP does, and returns when all of its threads do. Off Linux some may
// still run on for a moment.
func (p *Process) Suspend() error {
	p.suspending.Lock()
	defer p.suspending.Unlock()
	if err := Suspend(p.cmd.Process); err != nil {
		return err
	}
	p.suspended.Store(true)
	return nil
}

// Resume lets a suspended process go on.
func (p *Process) Resume() error {
	p.suspending.Lock()
	defer p.suspending.Unlock()
	if err := Resume(p.cmd.Process); err != nil {
		return err
	}
	p.suspended.Store(false)
	return nil
}

// Suspended reports whether Suspend was called last, and Resume not since.
func (p *Process) Suspended() bool { return p.suspended.Load() }

// State tells how the process is, for what a failure says: how it has ended, that it was suspended, or what it does as
// far as the system knows.
func (p *Process) State() string {
	switch {
	case p.Ended():
		return "has ended (" + p.cmd.ProcessState.String() + ")"
	case p.Suspended():
		return "was suspended"
	}
	return doing(p.PID())
}
