// The sockets of a client of our own, so that none outlives it. open.go installs the dialer; conn.go closes what is
// left.

package rueidisconn

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/redis/rueidis"
)

// sockets are the connections that a rueidis client has made. A client of a Cluster connects to all nodes at once and
// goes on with the first that answers. If another answers after the client has failed or was closed, rueidis takes no
// notice, and its connection would stay open. So all are recorded here and closed.
type sockets struct {
	custom dialer // how the user wants them to be made; nil for rueidis's own way

	mu     sync.Mutex // guards what follows
	closed bool
	open   map[*socket]struct{} // nil after close
}

// socket is one of them. It takes itself out of the set when it is closed.
type socket struct {
	net.Conn
	of *sockets
}

// dialer makes a connection. It encrypts it if config is not nil.
type dialer func(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error)

// dialerOf returns the dialer in the options of a client, or nil.
func dialerOf(o *rueidis.ClientOption) dialer {
	switch old := o.DialFn; { // deprecated, but whoever has set it expects it to be called
	case o.DialCtxFn != nil:
		return o.DialCtxFn
	case old != nil:
		return func(_ context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
			return old(addr, d, config)
		}
	}
	return nil
}

// dial connects: in the user's way if there is one, and else as rueidis does.
func (s *sockets) dial(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
	var conn net.Conn
	var err error
	switch {
	case s.custom != nil:
		conn, err = s.custom(ctx, addr, d, config)
	case config == nil:
		conn, err = d.DialContext(ctx, "tcp", addr)
	default:
		conn, err = (&tls.Dialer{NetDialer: d, Config: config}).DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	// Recorded at once: a connection that is made while all are being closed must not be left.
	made := &socket{Conn: conn, of: s}
	if !s.add(made) {
		_ = conn.Close() // nothing was sent
		return nil, net.ErrClosed
	}
	return made, nil
}

// add records a connection. It reports false if all were closed already.
func (s *sockets) add(made *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.open == nil {
		s.open = make(map[*socket]struct{})
	}
	s.open[made] = struct{}{}
	return true
}

// Close closes the connection, and forgets it.
func (c *socket) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// close closes all open connections, and those that are made later. Without the mutex, because Close of a connection
// may block.
func (s *sockets) close() {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close() // whoever used it has gone
	}
}
