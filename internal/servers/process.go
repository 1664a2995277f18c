package servers

import (
	"os/exec"
	"runtime"
	"sync/atomic"
)

// process is one run of a server.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and was waited for

	stopped atomic.Bool // it hangs because it was told to
}

// run starts cmd in the room, if there is one.
func run(cmd *exec.Cmd, in *room) (*process, error) {
	dieWithUs(cmd)
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() { // ends with the process, which Kill ends at the latest
		// Linux sends the signal of dieWithUs when the thread that started the process ends, and Go ends threads that a test
		// has locked. So the thread is kept, which costs nothing: one waits for the process anyway.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := in.start(cmd) // the thread of a room lasts as long
		started <- err
		if err == nil {
			_ = cmd.Wait() // the log says why it ended
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the process, also one that is stopped, and returns when it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended by itself
	<-p.exited
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// state tells whether the process has ended, was stopped, or what it does as far as the system knows.
func (p *process) state() string {
	switch {
	case p.ended():
		return "has ended (" + p.cmd.ProcessState.String() + ")"
	case p.stopped.Load():
		return "was stopped"
	}
	return doing(p.cmd.Process.Pid)
}
