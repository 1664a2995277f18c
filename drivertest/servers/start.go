package servers

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	host = "127.0.0.1"

	// startTimeout bounds one start. Servers on the JVM take many seconds on a loaded machine.
	startTimeout = 60 * time.Second

	// attempts is how often a start is tried: another process may take a port between its choice and the start.
	attempts = 3

	// logShown is how much of the end of a server's log a failure shows.
	logShown = 4 << 10
)

// Server is one that runs.
type Server struct {
	Site
	cmd    *exec.Cmd
	log    *capture
	exited chan struct{} // closed when the process has ended and was waited for
}

// Start starts a server for t, and returns when it serves. It is killed when t ends, with all its data. If t fails, the
// end of the server's log is in t's.
func Start(t testing.TB, spec Spec) *Server {
	t.Helper()
	binary := spec.find(t)
	var err error
	for range attempts {
		var s *Server
		if s, err = spec.start(t, binary); err == nil {
			t.Cleanup(func() {
				s.Kill()
				if t.Failed() {
					t.Logf("the log of %s ends with:\n%s", spec.Name, s.log)
				}
			})
			return s
		}
	}
	t.Fatalf("%s does not start: %v", spec.Name, err)
	return nil
}

// Addr returns host:port of the server's first port.
func (s *Server) Addr() string { return s.addr(0) }

func (s *Site) addr(i int) string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Ports[i])) }

// Kill ends the server as kill -9 does, and returns when it is gone. It may be called more than once.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // an error says that it has ended by itself
	<-s.exited
}

func (spec *Spec) start(t testing.TB, binary string) (*Server, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	ports, err := freePorts(max(spec.Ports, 1))
	if err != nil {
		return nil, err
	}
	s := &Server{
		Site:   Site{Binary: binary, Dir: t.TempDir(), Host: host, Ports: ports},
		log:    new(capture),
		exited: make(chan struct{}),
	}
	if spec.Prepare != nil {
		if err := spec.Prepare(ctx, s.Site); err != nil {
			return nil, fmt.Errorf("preparing its folder: %w", err)
		}
	}
	s.cmd = exec.CommandContext(context.Background(), binary, spec.Args(s.Site)...)
	s.cmd.Dir = s.Dir
	s.cmd.Env = append(os.Environ(), spec.Env...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// A child that the server left behind must not keep Wait from returning through the inherited output.
	s.cmd.WaitDelay = time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process, which Kill ends at the latest
		defer close(s.exited)
		_ = s.cmd.Wait() // the log says why it ended
	}()
	if err := s.await(ctx, spec); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%w; its log ends with:\n%s", err, s.log)
	}
	return s, nil
}

// await returns when the server is ready, or with an error when it has ended or ctx has.
func (s *Server) await(ctx context.Context, spec *Spec) error {
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		once, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := spec.Ready(once, s.Site)
		cancel()
		select {
		case <-s.exited: // looked at first: on a port that was taken, somebody else may have answered
			return fmt.Errorf("it ended (%v)", s.cmd.ProcessState)
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-pause.C:
		case <-s.exited: // the next round says so
		case <-ctx.Done():
			return fmt.Errorf("it is not ready after %v: %w", startTimeout, err)
		}
	}
}

// freePorts returns ports of loopback that nobody listened on a moment ago.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range n {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close() // all stay open until all are chosen, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// capture keeps what a server writes.
type capture struct {
	mu  sync.Mutex // guards buf: the server writes while a failure reads
	buf bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(p)
}

// String returns the end of the log.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := strings.TrimSpace(c.buf.String())
	if len(all) > logShown {
		return "..." + all[len(all)-logShown:]
	}
	return all
}
