// The socket below TLS, whose writes end at a deadline without losing their place. write.go writes through it,
// socket_linux.go makes its system calls.

package resp

import (
	"errors"
	"net"
	"os"
	"sync"
)

// socket is the connection below TLS, or the whole connection without it. If a write reaches its deadline, it succeeds
// as far as its caller knows, and the unsent rest is kept: neither TLS nor a command could go on after a half-sent
// piece.
type socket struct {
	net.Conn
	raw *rawIO // a faster way to read and write Conn; nil if there is none

	mu   sync.Mutex // guards what follows, and orders writes: TLS also writes by itself
	rest []byte     // what must be sent before everything else
}

// Write sends b, and keeps what it cannot send before the deadline.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.sendRest(); err != nil {
		return 0, err
	}
	n := 0
	if len(s.rest) == 0 { // else b must wait behind the rest
		var err error
		if n, err = s.send(b); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	s.rest = append(s.rest, b[n:]...)
	return len(b), nil
}

// catchUp sends what was kept, as far as the deadline allows.
func (s *socket) catchUp() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sendRest()
}

// sendRest is catchUp for a caller that holds mu.
func (s *socket) sendRest() error {
	if len(s.rest) == 0 {
		return nil
	}
	n, err := s.send(s.rest)
	if s.rest = s.rest[n:]; len(s.rest) == 0 {
		s.rest = nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// isBehind reports whether something is kept.
func (s *socket) isBehind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.rest) > 0
}

// send writes until the deadline.
func (s *socket) send(b []byte) (int, error) {
	if s.raw != nil {
		return s.raw.write(b)
	}
	return s.Conn.Write(b)
}

// Read reads until the deadline.
func (s *socket) Read(b []byte) (int, error) {
	if s.raw != nil {
		return s.raw.read(b)
	}
	return s.Conn.Read(b)
}
