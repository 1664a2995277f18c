package run

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/worker"
)

// process is one client process, through all its lives.
type process struct {
	job   worker.Job
	links links    // to the servers; none if there are no proxies between
	self  []string // the command that makes this program a worker

	member *servers.Member // its place in a network that can be cut; nil if there is none

	mu     sync.Mutex // guards what follows
	child  *childproc.Child
	exited chan struct{} // closed when child is over, and failed is known
	failed error         // how it ended, if that was neither kill nor order
	killed bool
	born   time.Time // of this life
}

// mostStart is how long a process may take until it records what it does.
const mostStart = time.Minute

// start begins a life, and returns when the process records: what is done to it before that is done to no client, and
// may leave a run without its history.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	stderr, err := os.OpenFile(filepath.Join(p.job.Dir, fmt.Sprintf("proc-%02d.stderr", p.job.Proc)),
		os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd := exec.Command(p.self[0], p.self[1:]...) //nolint:noctx // its life is the nemesis's business
	cmd.Stderr = stderr
	if p.job.Proc%2 == 1 {
		// There the goroutines that renew leases share one processor with those that hold them.
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	}
	child, err := childproc.Open(cmd, p.member.Start)
	if err != nil {
		return errors.Join(err, stderr.Close())
	}
	if err := p.begin(child); err != nil {
		child.Kill()
		return fmt.Errorf("proc %d, life %d, has not begun: %w",
			p.job.Proc, p.job.Life, errors.Join(err, stderr.Close()))
	}
	exited := make(chan struct{})
	p.child, p.exited, p.killed, p.born = child, exited, false, time.Now()
	go func() { // ends with the process
		defer close(exited)
		err := child.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if err != nil && !p.killed {
			p.failed = errors.Join(p.failed, fmt.Errorf("proc %d, life %d: %w", p.job.Proc, p.job.Life, err))
		}
		p.failed = errors.Join(p.failed, stderr.Close())
	}()
	return nil
}

// begin tells the process what to do, and waits until it records.
func (p *process) begin(child *childproc.Child) error {
	defer time.AfterFunc(mostStart, child.Kill).Stop() // which ends what it says
	if err := child.Send(&p.job); err != nil {
		return err
	}
	var said worker.Ready
	if err := child.Receive(&said); err != nil {
		return err
	}
	if !said.Ready {
		return errors.New("it says that it is not ready")
	}
	return nil
}

// life is what runs now, or ran last.
func (p *process) life() *childproc.Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

// isOf reports whether what an engine has known since then, under the process's name, is of this life.
func (p *process) isOf(since time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return since.IsZero() || since.After(p.born)
}

// kill ends this life as kill -9 does.
func (p *process) kill() {
	p.mu.Lock()
	p.killed = true
	child, exited := p.child, p.exited
	p.mu.Unlock()
	child.Kill()
	<-exited
}

// again begins another life after kill.
func (p *process) again() error {
	p.mu.Lock()
	p.job.Life++
	p.mu.Unlock()
	return p.start()
}

// end has the process end in order, or kills it when it does not: that is an error.
func (p *process) end(patience time.Duration) error {
	p.mu.Lock()
	child, exited := p.child, p.exited
	p.mu.Unlock()
	child.CloseInput()
	var late error
	select {
	case <-exited:
	case <-time.After(patience):
		late = fmt.Errorf("proc %d did not end within %v", p.job.Proc, patience)
		_ = child.Signal(syscall.SIGQUIT) // its stacks go to its stderr; an error says that it has ended
		select {
		case <-exited:
		case <-time.After(5 * time.Second):
			p.kill()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if late != nil {
		return late
	}
	return p.failed
}
