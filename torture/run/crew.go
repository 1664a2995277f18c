package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/worker"
)

// mate is one client process, through all its lives.
type mate struct {
	job   worker.Job
	links links    // to the servers; none if there are no proxies between
	self  []string // the command that makes this program a worker

	member *servers.Member // its place in a network that can be cut; nil if there is none

	mu     sync.Mutex // guards what follows
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when cmd is over
	failed error         // how it ended, if that was neither kill nor order
	killed bool
	born   time.Time // of this life
}

// mostStart is how long a process may take until it records what it does.
const mostStart = time.Minute

// start begins a life, and returns when the process records: what is done to it before that is done to no client, and may leave a run
// without its history.
func (m *mate) start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	stderr, err := os.OpenFile(filepath.Join(m.job.Dir, fmt.Sprintf("proc-%02d.stderr", m.job.Proc)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = stderr.Close() }()         // the process has its own
	cmd := exec.Command(m.self[0], m.self[1:]...) //nolint:noctx // its life is the nemesis's business
	cmd.Stderr = stderr
	if m.job.Proc%2 == 1 {
		// There the goroutines that renew leases share one processor with those that hold them.
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.member.Start(cmd); err != nil {
		return err
	}
	if err := m.begin(cmd, stdin, stdout); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		return fmt.Errorf("proc %d, life %d, has not begun: %w; see its stderr", m.job.Proc, m.job.Life, errors.Join(err, cmd.Wait()))
	}
	exited := make(chan struct{})
	m.cmd, m.stdin, m.exited, m.killed, m.born = cmd, stdin, exited, false, time.Now()
	go func() { // ends with the process
		err := cmd.Wait()
		m.mu.Lock()
		if err != nil && !m.killed {
			m.failed = errors.Join(m.failed, fmt.Errorf("proc %d, life %d: %w", m.job.Proc, m.job.Life, err))
		}
		m.mu.Unlock()
		close(exited)
	}()
	return nil
}

// begin tells the process what to do, and waits until it records.
func (m *mate) begin(cmd *exec.Cmd, stdin io.Writer, stdout io.Reader) error {
	defer time.AfterFunc(mostStart, func() { _ = cmd.Process.Kill() }).Stop() // which ends its output
	if _, err := m.job.WriteTo(stdin); err != nil {
		return err
	}
	said := make([]byte, len(worker.Ready))
	if _, err := io.ReadFull(stdout, said); err != nil {
		return err
	}
	if string(said) != worker.Ready {
		return fmt.Errorf("it said %q", said)
	}
	return nil
}

// signal sends the process a signal; one that has ended is left alone.
func (m *mate) signal(s syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = m.killed || s == syscall.SIGKILL
	_ = m.cmd.Process.Signal(s)
}

// isOf reports whether what an engine has known since then, under the process's name, is of this life.
func (m *mate) isOf(since time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return since.IsZero() || since.After(m.born)
}

func (m *mate) pid() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cmd.Process.Pid
}

// kill ends this life as kill -9 does.
func (m *mate) kill() {
	m.signal(syscall.SIGKILL)
	m.mu.Lock()
	exited := m.exited
	m.mu.Unlock()
	<-exited
}

// again begins another life after kill.
func (m *mate) again() error {
	m.mu.Lock()
	m.job.Life++
	m.mu.Unlock()
	return m.start()
}

// end has the process end in order, or kills it when it does not: that is an error.
func (m *mate) end(patience time.Duration) error {
	m.mu.Lock()
	_ = m.stdin.Close()
	exited := m.exited
	m.mu.Unlock()
	var late error
	select {
	case <-exited:
	case <-time.After(patience):
		late = fmt.Errorf("proc %d did not end within %v", m.job.Proc, patience)
		m.signal(syscall.SIGQUIT) // its stacks go to its stderr
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
			m.kill()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if late != nil {
		return late
	}
	return m.failed
}
