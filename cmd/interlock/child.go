// The job's command as a process group: started, watched, signalled. job.go decides what to do with it; child_linux.go
// and child_other.go have what systems differ in. os/exec is not used: it does not tell of a command that was stopped,
// and its ExtraFiles would put the lock's file on descriptor 3, where a shell may have put one of its own.

package main

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// child is a started command and its process group, whose id is the command's process id. Its methods may be called
// from any goroutine, except stop, which is called once.
type child struct {
	pid int // set before startChild returns

	// changes tells of each stop of the command and of its end; gone is closed when nobody of its group is left. Both
	// belong to the goroutine of watch, which waits for a reader only until done is closed.
	changes chan syscall.WaitStatus
	gone    chan struct{}
	done    chan struct{}  // closed by stop
	settled sync.WaitGroup // is done when watch has returned
}

// startChild starts the command in a group of its own, in the terminal's foreground if foreground is not nil. lent is
// inherited under its own number, so that it covers no descriptor that a shell has handed to the command. It returns
// when the command has been started or could not be.
//
// In the child only what is marked close-on-exec is closed. So "interlock run x -- cmd 3<file" gives the command its
// descriptor 3, as without interlock (testdata/script/streams.txtar).
func startChild(
	path string, argv, env []string, streams [3]*os.File, lent *os.File, foreground *terminal,
) (*child, error) {
	attr := &syscall.ProcAttr{Env: env, Sys: childAttributes()}
	for _, f := range streams {
		attr.Files = append(attr.Files, f.Fd())
	}
	// The child does this before exec. If this process did it after the start, a read before that would stop the
	// command.
	if foreground != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, foreground.fd
	}
	if lent != nil {
		// Without the flag FD_CLOEXEC the descriptor survives exec.
		if _, err := unix.FcntlInt(lent.Fd(), unix.F_SETFD, 0); err != nil {
			return nil, err
		}
	}
	adoptOrphans()
	c := &child{changes: make(chan syscall.WaitStatus), gone: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error)
	c.settled.Add(1)
	// This goroutine ends when the group is gone or stop was called.
	go func() {
		defer c.settled.Done()
		// The parent-death signal of Linux is sent when the thread ends that has started the child, not the process
		// (golang/go issue 27505). So this thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		pid, _, err := syscall.StartProcess(path, argv, attr)
		c.pid = pid
		started <- err
		if err == nil {
			c.watch()
		}
	}()
	err := <-started
	runtime.KeepAlive(streams) // otherwise their finalizers might close them before the command has them
	return c, err
}

// watch reports every stop of the command and its end, and then waits for the rest of its group.
//
// It waits with WUNTRACED, because a command that was stopped by ^Z has to stop this process as well. WCONTINUED is
// left out: a command that goes on needs nothing from this process.
func (c *child) watch() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil { // only if somebody else has waited for our child
			// This is how wait encodes an exit code. The command's own is not known.
			status = exitFailed << 8
		}
		select {
		case c.changes <- status:
		case <-c.done:
			return
		}
		// A stopped command is watched further: it may be continued.
		if !status.Stopped() {
			break
		}
	}
	c.awaitGroup()
}

// awaitGroup polls, because nothing in POSIX tells when a process group becomes empty. The first look comes at once, so
// a command that leaves nobody behind costs no waiting; the pauses double from 1 ms to 20 ms.
//
// A pidfd stands for one process and not for a group, and a cgroup needs rights that a user may not have.
func (c *child) awaitGroup() {
	for pause := time.Millisecond; c.alive(); pause = min(2*pause, 20*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-c.done:
			return
		}
	}
	close(c.gone)
}

// alive reports whether anybody of the group is there. Another user's process (EPERM) counts. A dead child of ours must
// be waited for first, or it would be counted too.
// It asks for the whole group, because orphans of the command have become children of this process; see adoptOrphans.
func (c *child) alive() bool {
	for {
		if pid, err := syscall.Wait4(-c.pid, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			break
		}
	}
	return !errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH)
}

// signal sends sig to the whole group. An error means that nobody is left, or that the rest belongs to another user: in
// both cases nothing more can be done.
func (c *child) signal(sig syscall.Signal) {
	_ = syscall.Kill(-c.pid, sig)
}

// stop ends watching, and waits until watch has returned. The command, if it still runs, is left alone.
//
// On Linux it is killed when this process ends; see childAttributes.
func (c *child) stop() {
	close(c.done)
	c.settled.Wait()
}
