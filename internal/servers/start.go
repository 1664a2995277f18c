package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
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

// Server is one that was started. Its methods may be called from several goroutines, but one at a time for the fates of
// its process: Kill, Stop, Cont and Restart.
type Server struct {
	Site
	t    testing.TB
	spec Spec
	log  *capture

	mu   sync.Mutex         // guards proc
	proc *childproc.Process // the one that runs, or ran last
}

// Start starts a server for t, and returns when it serves. It is killed when t ends, with all its data; on Linux it
// also dies with the test's process, however that ends. If t fails, the end of the server's log is in t's.
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
					t.Logf("the log of %s on %s ends with:\n%s", spec.Name, s.Addr(), s.log)
				}
			})
			return s
		}
	}
	t.Fatalf("%s does not start: %v", spec.Name, err)
	return nil
}

// Member returns the server's place in a [Network], or nil.
func (s *Server) Member() *Member { return s.spec.At }

// Addr returns host:port of the server's first port.
func (s *Server) Addr() string { return s.addr(0) }

func (s *Site) addr(i int) string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Ports[i])) }

// Kill ends the server as kill -9 does, and returns when it is gone. It may be called more than once.
func (s *Server) Kill() { s.current().Kill() }

// Alive reports whether the server's process runs; one that is stopped does.
func (s *Server) Alive() bool { return !s.current().Ended() }

// Stop makes the server hang: it keeps its connections and accepts more of them, and answers nothing
// until [Server.Cont]. It returns when all of the server's threads stand still, on Linux; elsewhere some
// may still be on the way.
func (s *Server) Stop() {
	s.t.Helper()
	s.pause((*childproc.Process).Suspend)
}

// Cont lets a server that was stopped go on.
func (s *Server) Cont() {
	s.t.Helper()
	s.pause((*childproc.Process).Resume)
}

func (s *Server) pause(do func(*childproc.Process) error) {
	s.t.Helper()
	if err := do(s.current()); err != nil {
		s.t.Fatalf("%s: stop or continue: %v", s.spec.Name, err)
	}
}

// Restart starts the server again on the same ports with the data that it left behind, and returns when it serves. A
// server that runs is killed first. Call it from the test's own goroutine: it ends the test if
// the server does not start.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := again(func() error { return s.launch(ctx) }); err != nil {
		s.t.Fatalf("%s does not start again: %v", s.spec.Name, err)
	}
}

// restartAll kills servers and starts them again at once, for those of which none serves alone. It returns when all are
// ready.
func restartAll(all []*Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for _, s := range all {
		s.Kill()
	}
	errs := make([]error, len(all))
	var starts sync.WaitGroup
	for i, s := range all {
		starts.Go(func() { errs[i] = again(func() error { return s.launch(ctx) }) })
	}
	starts.Wait()
	return errors.Join(errs...)
}

// hurt is how long a server may need to end by itself that was hurt.
const hurt = time.Second

// Revive starts a server again that has ended by itself, or is about to, because of what was done to it, and returns
// when it serves. One that runs on is left alone. Call it from the test's own goroutine, as Restart.
func (s *Server) Revive() {
	s.t.Helper()
	if s.fails() {
		s.Restart()
	}
}

// fails reports whether the server has ended, or does within a moment, or does not serve in time.
func (s *Server) fails() bool {
	p := s.current()
	select {
	case <-p.Exited():
		return true
	case <-time.After(hurt):
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout/6)
	defer cancel()
	return s.await(ctx, p) != nil
}

// answers reports whether the server runs and is not stopped.
func (s *Server) answers() bool {
	p := s.current()
	return !p.Ended() && !p.Suspended()
}

// state tells how the server's process is, for what a failure says.
func (s *Server) state() string { return s.current().State() }

func (s *Server) current() *childproc.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
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
		Site: Site{Binary: binary, Dir: spec.Disk.folder(t), Host: spec.address(), Ports: ports},
		t:    t, spec: *spec, log: new(capture),
	}
	if spec.Prepare != nil {
		spec.room().within(func() { err = spec.Prepare(ctx, s.Site) })
		if err != nil {
			return nil, fmt.Errorf("preparing its folder: %w", err)
		}
	}
	if err := s.launch(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// launch runs the server's process, and returns when it serves. If it returns an error, the process is gone.
func (s *Server) launch(ctx context.Context) error {
	cmd := exec.CommandContext(context.Background(), s.Binary, s.spec.Args(s.Site)...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), s.spec.Env...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	p, err := childproc.Start(cmd, s.spec.room().start) // the thread of a room lasts as long
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	if err := s.await(ctx, p); err != nil {
		p.Kill()
		return fmt.Errorf("%w; its log ends with:\n%s", err, s.log)
	}
	return nil
}

// await returns when the server is ready, or with an error when its process has ended or ctx has.
func (s *Server) await(ctx context.Context, p *childproc.Process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process, or with this call
		select {
		case <-p.Exited():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, func(ctx context.Context) error { return s.spec.Ready(ctx, s.Site) })
	if p.Ended() { // looked at also after a success: on a port that was taken, somebody else may have answered
		return errors.New("it " + p.State())
	}
	if err != nil {
		return fmt.Errorf("it is not ready after %v: %w", startTimeout, err)
	}
	return nil
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
