// The keeper: a process beside a job whose lock needs this process to live. If this process is killed alone, by kill -9
// or for want of memory, nobody renews the lock or holds its connection. The keeper then kills the job's group. The
// command itself is killed by the kernel already (child_linux.go), but not what it has started, and no command that has
// changed its user. If this process alone is stopped (SIGSTOP), nobody renews the lock either, and the keeper kills the
// group before the lock runs out: it is told until when the lock can be trusted.
//
// Who has what, and what happens when one of them is killed or stopped alone:
//
//	interlock    the lock, the job, and a pipe to the keeper. Killed: the pipe ends, and the keeper kills the group.
//	             Where a lock ends with its connection, the keeper has copies of the sockets. So the server sees no
//	             end of the connection until the group is gone. Stopped: the keeper hears of no renewal, and kills the
//	             group in time.
//	the keeper   the other end of the pipe. Killed: interlock goes on, and starts another keeper (job.go). Stopped:
//	             interlock goes on.
//	the command  on files nothing of this: there it has the lock's file, which holds the lock as long as it lives
//	             (job.go). So it needs no keeper, and lives on.
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
func (k *keeper) guards(group int) { k.tell(groupWord, int64(group)) }

// until tells the keeper to kill the group at an instant, unless it is told a later one before.
func (k *keeper) until(at time.Time) {
	now := sharedClock() // first: a stop between the two makes the instant earlier, and not later
	if now == 0 {
		return
	}
	k.tell(untilWord, int64(now+time.Until(at)))
}

// The words of the pipe: each begins a line, and a number follows.
const (
	groupWord = "group" // to kill
	untilWord = "until" // when to kill it, by sharedClock
)

// tell writes a line into the pipe, which has room for a thousand. A keeper that has not read as many stands still, and
// would kill the job when it goes on: another one takes its place.
func (k *keeper) tell(word string, number int64) {
	if k == nil {
		return
	}
	_ = k.pipe.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) // a pipe has deadlines
	_, err := fmt.Fprintln(k.pipe, word, number)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = k.process.Kill() // ended tells
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

// keep is the whole work of a keeper. The pipe is its only news: an end of it says that the process that we watch has
// ended, however it did, and silence beyond the last instant says that it stands still.
func keep(pipe *os.File, stderr io.Writer) {
	for _, sig := range deadly {
		signal.Ignore(sig)
	}
	var w watched
	for {
		switch lines, err := w.listen(pipe); {
		case errors.Is(err, io.EOF):
			w.kill(stderr, "interlock was killed, so its command is killed too")
			return
		case err != nil: // the pipe cannot fail otherwise
			return
		case lines == "":
			w.kill(stderr, "interlock stands still while its lock runs out, so its command is killed")
			w.until = 0 // told once; the end of the pipe ends us
		default:
			w.take(lines)
		}
	}
}

// watched is what a keeper was told.
type watched struct {
	group int           // 0 before the job was started
	until time.Duration // by sharedClock; 0 if the lock cannot run out
	rest  string        // the beginning of a line
}

// listen returns what comes through the pipe, or nothing when the last instant is over. What has come counts before
// that: this process may have stood still itself, with news in the pipe.
func (w *watched) listen(pipe *os.File) (string, error) {
	for {
		wait := -1
		if w.until > 0 {
			wait = int(max(0, w.until-sharedClock()+time.Millisecond) / time.Millisecond)
		}
		fds := []unix.PollFd{{Fd: int32(pipe.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, wait)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return "", err
		case n > 0:
			var buffer [4096]byte
			n, err := pipe.Read(buffer[:])
			return string(buffer[:n]), err
		case w.until > 0 && sharedClock() >= w.until:
			return "", nil
		}
	}
}

// take takes in lines. The last one may not be whole yet.
func (w *watched) take(lines string) {
	all := strings.Split(w.rest+lines, "\n")
	w.rest = all[len(all)-1]
	for _, line := range all[:len(all)-1] {
		word, text, _ := strings.Cut(line, " ")
		number, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil:
		case word == groupWord:
			w.group = int(number)
		case word == untilWord:
			w.until = time.Duration(number)
		}
	}
}

// kill kills the group and returns when it is gone. Before the job was started there is none.
func (w *watched) kill(stderr io.Writer, why string) {
	if w.group <= 1 {
		return
	}
	fmt.Fprintln(stderr, "interlock: "+why)
	// Again and again, because a process that we may not signal may have started one that we may.
	for pause := time.Millisecond; ; {
		err := syscall.Kill(-w.group, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) || len(membersOf(w.group)) == 0 {
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
