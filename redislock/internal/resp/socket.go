package resp

import (
	"errors"
	"net"
	"os"
	"sync"
)

// socket is the connection below TLS, if there is TLS. A write that its deadline ends has succeeded as far as its
// caller knows, and what was not sent is kept: TLS could not go on after half a record, nor a command after half of it.
type socket struct {
	net.Conn
	raw *rawIO // how to read and write Conn faster; nil if there is no such way

	mu   sync.Mutex // guards what follows, and orders writes: TLS has some of its own to send
	rest []byte     // what is to be sent before everything else
}

// Write sends b, or keeps what it cannot send before the deadline.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.sendRest(); err != nil {
		return 0, err
	}
	n := 0
	if len(s.rest) == 0 {
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

// send writes, until the deadline.
func (s *socket) send(b []byte) (int, error) {
	if s.raw != nil {
		return s.raw.write(b)
	}
	return s.Conn.Write(b)
}

// Read reads, until the deadline.
func (s *socket) Read(b []byte) (int, error) {
	if s.raw != nil {
		return s.raw.read(b)
	}
	return s.Conn.Read(b)
}
