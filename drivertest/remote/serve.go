package remote

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
	"github.com/interlock-go/interlock/internal/childproc"
)

// The child: it opens the real driver and serves it until the parent is gone. methods.go has the calls.

// Main serves a driver and ends the process if this process was started by Open. Otherwise it returns at once. Call it
// first in TestMain:
//
//	func TestMain(m *testing.M) {
//		remote.Main(func(dir string) (driver.Driver, error) { return filelock.New(dir, nil) })
//		os.Exit(m.Run())
//	}
func Main(open func(arg string) (driver.Driver, error)) {
	parent, arg, child := childproc.Serve(role, childproc.Gob)
	if !child {
		return
	}
	s := &server{parent: parent, cancels: make(map[int]context.CancelFunc)}
	d, err := open(arg)
	hello := &message{Op: opHello, Err: pack(err)}
	if err == nil {
		s.d = optional.Complete(d)
		hello.Traits, hello.Optional = d.Traits(), optional.Of(d)
	}
	s.send(hello)
	if err != nil {
		os.Exit(1)
	}
	for {
		m := new(message)
		if parent.Receive(m) != nil {
			os.Exit(0) // the other end is gone; the holds end with this process
		}
		s.receive(m)
	}
}

// server is the child's end.
type server struct {
	d      optional.All
	parent *childproc.Conn

	mu      sync.Mutex // guards cancels
	cancels map[int]context.CancelFunc
}

// send sends m. If the other end is gone, it ends the process.
func (s *server) send(m *message) {
	if err := s.parent.Send(m); err != nil { // the other end is gone
		fmt.Fprintln(os.Stderr, "remote:", err)
		os.Exit(1)
	}
}

// receive begins a call in a goroutine of its own, or ends the context of one.
func (s *server) receive(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Op == opCancel {
		if cancel := s.cancels[m.Call]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancels[m.Call] = cancel
	go func() { // ends with the call; the process does not wait for it
		answer := s.call(ctx, m)
		answer.Call, answer.Op = m.Call, opAnswer
		s.send(answer)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, m.Call)
		cancel()
	}()
}

// call makes the call and returns what it answers.
func (s *server) call(ctx context.Context, m *message) *message {
	if call, known := methods[m.Op]; known {
		return call(s, ctx, m)
	}
	return failed(fmt.Errorf("remote: unknown operation %q", m.Op))
}

// hints returns a function that tells the other end that something has happened.
func (s *server) hints(m *message) func() {
	return func() { s.send(&message{Call: m.Call, Op: opHint}) }
}

// request returns the request of a call, with callbacks that send messages.
func (s *server) request(m *message) *driver.Request {
	r := m.Request
	r.Waiting = func(held *driver.HeldError) {
		s.send(&message{Call: m.Call, Op: opWaiting, Err: pack(held)})
	}
	r.Lost, r.Wanted = s.lost(m, 0), s.wanted(m, 0)
	return r
}

// wanted returns a Wanted that tells the other end, for the request of that index.
func (s *server) wanted(m *message, index int) func() {
	return func() { s.send(&message{Call: m.Call, Op: opWanted, Index: index}) }
}

// lost returns a Lost that tells the other end, for the request of that index.
func (s *server) lost(m *message, index int) func(driver.LostReason, error) {
	return func(reason driver.LostReason, cause error) {
		s.send(&message{Call: m.Call, Op: opLost, Index: index, Reason: reason, Err: pack(cause)})
	}
}
