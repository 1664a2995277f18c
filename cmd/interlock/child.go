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

// child is a started command and its process group, whose id is the command's process id.
type child struct {
	pid int

	// changes tells what happens to the command; gone is closed when nobody of its group is left. Both belong to watch,
	// which never waits for a reader longer than until done is closed.
	changes chan syscall.WaitStatus
	gone    chan struct{}
	done    chan struct{}
	settled sync.WaitGroup
}

// startChild starts the command in a group of its own, in the terminal's foreground if it should be. lent is inherited
// under its own number, so that no descriptor that a shell handed to the command is covered.
func startChild(
	path string, argv, env []string, streams [3]*os.File, lent *os.File, foreground *terminal,
) (*child, error) {
	attr := &syscall.ProcAttr{Env: env, Sys: childAttributes()}
	for _, f := range streams {
		attr.Files = append(attr.Files, f.Fd())
	}
	if foreground != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, foreground.fd
	}
	if lent != nil {
		if _, err := unix.FcntlInt(lent.Fd(), unix.F_SETFD, 0); err != nil {
			return nil, err
		}
	}
	adoptOrphans()
	c := &child{changes: make(chan syscall.WaitStatus), gone: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error)
	c.settled.Add(1)
	// Ends when the group is gone or stop was called.
	go func() {
		defer c.settled.Done()
		// The parent-death signal of Linux follows the thread that started the child, so that this thread must live as
		// long as the child (golang/go issue 27505).
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
	runtime.KeepAlive(streams)
	return c, err
}

// watch reports every stop of the command and its end, and then waits for the rest of its group.
func (c *child) watch() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil { // only if somebody else waited for our child
			status = exitFailed << 8
		}
		select {
		case c.changes <- status:
		case <-c.done:
			return
		}
		if !status.Stopped() {
			break
		}
	}
	c.awaitGroup()
}

// awaitGroup polls, because nothing in POSIX tells when a process group becomes empty. The first look comes at once: a
// command that leaves nobody behind costs no waiting.
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

// alive reports whether anybody of the group is there. Another user's process (EPERM) is somebody; a dead child of ours
// is nobody, once it has been waited for.
func (c *child) alive() bool {
	for {
		if pid, err := syscall.Wait4(-c.pid, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			break
		}
	}
	return !errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH)
}

// signal sends sig to the whole group. Errors say that nobody is left, or that the rest belongs to another user: in
// both cases there is nothing that we could do.
func (c *child) signal(sig syscall.Signal) {
	_ = syscall.Kill(-c.pid, sig)
}

// stop ends watching.
func (c *child) stop() {
	close(c.done)
	c.settled.Wait()
}
