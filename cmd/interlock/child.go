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
	// orphans says that other children of this process may be waited for, too: they are what the command left behind.
	orphans bool

	// changes tells of each stop of the command and of its end; gone is closed when nobody of its group is left. Both
	// belong to the goroutine of watch, which waits for a reader only until done is closed.
	changes chan syscall.WaitStatus
	gone    chan struct{}
	done    chan struct{}  // closed by stop
	settled sync.WaitGroup // is done when watch has returned
}

// launch is what a command is started with.
type launch struct {
	path       string
	argv, env  []string
	streams    [3]*os.File
	lent       *os.File  // nil, or the lock's file, which the command inherits
	foreground *terminal // nil, or the terminal whose foreground the command gets
	keeper     *keeper   // nil, or who kills the command's group if this process is killed
	orphans    bool      // of the child
}

// startChild starts the command in a group of its own. It returns when the command has been started or could not be.
//
// A command without a lent file is killed with this process: its lock does not outlive this process. One with it goes
// on, and the lock with it.
//
// In the child only what is marked close-on-exec is closed. So "interlock run x -- cmd 3<file" gives the command its
// descriptor 3, as without interlock (testdata/script/streams.txtar).
func startChild(s *launch) (*child, error) {
	attr := &syscall.ProcAttr{Env: s.env, Sys: childAttributes(s.lent == nil)}
	for _, f := range s.streams {
		attr.Files = append(attr.Files, f.Fd())
	}
	// The child does this before exec. If this process did it after the start, a read before that would stop the
	// command.
	if s.foreground != nil {
		attr.Sys.Foreground, attr.Sys.Ctty = true, s.foreground.fd
	}
	if s.lent != nil {
		fd, err := lend(s.lent)
		if err != nil {
			return nil, err
		}
		defer unix.Close(fd) // the command has its own by then, and a copy here would keep the lock after it
	}
	adoptOrphans()
	c := &child{
		orphans: s.orphans,
		changes: make(chan syscall.WaitStatus), gone: make(chan struct{}), done: make(chan struct{}),
	}
	started := make(chan error)
	c.settled.Add(1)
	// This goroutine ends when the group is gone or stop was called.
	go func() {
		defer c.settled.Done()
		// The parent-death signal of Linux is sent when the thread ends that has started the child, not the process
		// (golang/go issue 27505). So this thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		pid, _, err := syscall.StartProcess(s.path, s.argv, attr)
		c.pid = pid
		if err == nil {
			s.keeper.guards(pid) // before all else: until then nobody but the kernel ends it with this process
		}
		started <- err
		if err == nil {
			c.watch()
		}
	}()
	err := <-started
	runtime.KeepAlive(s) // otherwise finalizers might close the streams before the command has them
	return c, err
}

// lentFrom is the smallest number of a lent descriptor. Scripts choose small ones for files of their own, which would
// close the lock's; the manual of flock(1) has 200 for that.
const lentFrom = 201

// lend returns a copy of a descriptor that a command inherits. Without the flag FD_CLOEXEC it survives exec.
func lend(f *os.File) (int, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, lentFrom)
	if err != nil { // the system allows no number as large
		fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD, 3)
	}
	return fd, err
}

// watch reports every stop of the command and its end, and then waits for the rest of its group.
//
// It waits with WUNTRACED, because a command that was stopped by ^Z has to stop this process as well. WCONTINUED is
// left out: a command that goes on needs nothing from this process.
func (c *child) watch() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(c.waited(c.pid), &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) || err == nil && pid != c.pid { // an orphan, or a keeper
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

// waited is whom to wait for: id, or all children of this process. Orphans of a long job would stay zombies until the
// job ends, and in the end no process could be started on the machine.
func (c *child) waited(id int) int {
	if c.orphans {
		return -1
	}
	return id
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
		if pid, err := syscall.Wait4(c.waited(-c.pid), nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
			break
		}
	}
	return !errors.Is(syscall.Kill(-c.pid, 0), syscall.ESRCH)
}

// signal sends sig to the whole group. It returns the error if somebody is left and none of them may be signalled, as
// after sudo. Nobody left is no error.
func (c *child) signal(sig syscall.Signal) error {
	if err := syscall.Kill(-c.pid, sig); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// stop ends watching, and waits until watch has returned. The command, if it still runs, is left alone.
//
// On Linux it is killed when this process ends, unless it has the lock's file; see childAttributes.
func (c *child) stop() {
	close(c.done)
	c.settled.Wait()
}
