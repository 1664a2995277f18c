// The keeper: a process beside a job whose lock needs this process to live. If this process is killed alone, by kill -9
// or for want of memory, nobody renews the lock or holds its connection. The keeper then kills the job's group. The
// command itself is killed by the kernel already (child_linux.go), but not what it has started, and no command that has
// changed its user.
//
// Who has what, and what happens when one of them is killed alone:
//
//	interlock    the lock, the job, and a pipe to the keeper. Killed: the pipe ends, and the keeper kills the group.
//	             Where a lock ends with its connection, the keeper has copies of the sockets. So the server sees no
//	             end of the connection until the group is gone.
//	the keeper   the other end of the pipe. Killed: interlock goes on, and starts another keeper (job.go).
//	the command  on files nothing of this: there it has the lock's file, which holds the lock as long as it lives
//	             (job_start.go). So it needs no keeper, and lives on.
//
// The keeper is in a session of its own and ignores what can be ignored. So ^C, the end of a terminal, and a service
// manager that signals everybody leave it alone. It ends with interlock.

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperName is the first argument of a keeper, by which main knows that it is one. No command line of a user has it.
const keeperName = "interlock-keeper"

// keeperPipe is the descriptor of the pipe in the keeper: the first after the standard streams.
const keeperPipe = 3

// keeper is a keeper as the process that it watches has it.
type keeper struct {
	process *os.Process
	pipe    *os.File      // our end; when it is closed, the keeper acts
	gone    chan struct{} // closed when the process has ended
}

// startKeeper starts a keeper for a job that has not been started yet. keeps are descriptors that it holds until the
// job's group is gone. name is for lists of processes.
//
// It does not wait until the keeper has begun its work: what was written into the pipe, and its end, stay there.
func startKeeper(name string, keeps []int, stderr uintptr) (*keeper, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	theirs, ours, err := os.Pipe() // both are closed on exec, so the job does not keep ours open
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	files := []uintptr{null.Fd(), null.Fd(), stderr, theirs.Fd()}
	for _, fd := range keeps {
		files = append(files, uintptr(fd))
	}
	// Not os.StartProcess, whose files would make sockets block in this process, too.
	pid, _, err := syscall.StartProcess(ownProgram(), []string{keeperName, name}, &syscall.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	k := &keeper{pipe: ours, gone: make(chan struct{})}
	k.process, err = os.FindProcess(pid) // has no error on Unix
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	// This goroutine ends with the keeper, which stop kills.
	go func() {
		_, _ = k.process.Wait() // the error says that child.watch was faster
		close(k.gone)
	}()
	return k, nil
}

// ended is closed when the keeper has ended; without one it is nil, and never is.
func (k *keeper) ended() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.gone
}

// guards tells the keeper the group that it has to kill. If the keeper was killed meanwhile, ended tells.
func (k *keeper) guards(group int) {
	if k != nil {
		_, _ = fmt.Fprintln(k.pipe, group)
	}
}

// stop ends the keeper, which does nothing more, and returns when it is gone and has closed what it held. The job's
// group must be gone, or is to live on without a lock.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	select {
	case <-k.gone: // its number may be another process's by now
	default:
		_ = k.process.Kill() // an error says that it has ended
	}
	<-k.gone
	_ = k.pipe.Close()
}

// sockets are the descriptors of all sockets that this process has open. The clients of servers do not tell which of
// theirs a lock depends on.
func sockets() (open []int) {
	entries, _ := os.ReadDir("/dev/fd") // after an error a lock ends with this process, and the keeper still kills
	for _, entry := range entries {
		var st unix.Stat_t
		fd, err := strconv.Atoi(entry.Name())
		if err == nil && fd > 2 && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			open = append(open, fd)
		}
	}
	return open
}

// keep is the whole work of a keeper.
func keep(pipe io.Reader, stderr io.Writer) {
	for _, sig := range deadly {
		signal.Ignore(sig)
	}
	told, _ := io.ReadAll(pipe) // until the process that we watch has ended, however it did
	group, err := strconv.Atoi(strings.TrimSpace(string(told)))
	if err != nil || group <= 1 { // it had not started the job
		return
	}
	fmt.Fprintln(stderr, "interlock: interlock was killed, so its command is killed too")
	// Again and again, because a process that we may not signal may have started one that we may.
	for pause := time.Millisecond; ; {
		err := syscall.Kill(-group, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) || len(membersOf(group)) == 0 {
			return
		}
		<-time.After(pause)
		most := 20 * time.Millisecond
		if errors.Is(err, syscall.EPERM) { // it may live for hours, and each look reads all processes
			most = time.Second
		}
		pause = min(2*pause, most)
	}
}
