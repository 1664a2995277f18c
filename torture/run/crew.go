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

	"github.com/interlock-go/interlock/drivertest/servers"
	"github.com/interlock-go/interlock/torture/worker"
)

// mate is one client process, through all its lives.
type mate struct {
	job   worker.Job
	proxy *servers.Proxy // before the server; nil if there is none
	self  []string       // the command that makes this program a worker

	mu     sync.Mutex // guards what follows
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	exited chan struct{} // closed when cmd is over
	failed error         // how it ended, if that was neither kill nor order
	killed bool
}

// start begins a life.
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
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := m.job.WriteTo(stdin); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	exited := make(chan struct{})
	m.cmd, m.stdin, m.exited, m.killed = cmd, stdin, exited, false
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

// signal sends the process a signal; one that has ended is left alone.
func (m *mate) signal(s syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.killed = m.killed || s == syscall.SIGKILL
	_ = m.cmd.Process.Signal(s)
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
