package zklock

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

const (
	// mostDial bounds the attempt to reach one server, and mostGreeting its answer to the first request. The client
	// library would wait for that for seven session timeouts. Both are shorter for short sessions, but not below
	// leastPatience: a silent server is noticed after two thirds of the timeout, and what is left must do for one more
	// that is silent.
	mostDial      = 2 * time.Second
	mostGreeting  = 3 * time.Second
	leastPatience = 250 * time.Millisecond

	// firstPause and mostPause are between two rounds in which no server of the list could be reached.
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// errHungUp is why nothing is dialled any more.
var errHungUp = errors.New("the session is over")

// line is what is below the client library in one session: it chooses the server, makes the connection, reads what the
// library does not tell (the timeout that was negotiated), and cuts the connection when the session is to end. The
// library calls it from one goroutine.
type line struct {
	hosts []string // in an order of this line's own, so that clients spread over the servers
	tls   *tls.Config

	patience time.Duration // with one server, at most

	ctx    context.Context //nolint:containedctx // ends with the session: dialling and pauses end with it
	hangUp context.CancelFunc

	mu       sync.Mutex // guards what follows; nothing blocks under it
	next     int
	failures int // servers tried in vain since the last success
	conn     *tap
	greeting greeting // of the last connection that was accepted
	err      error    // why the last attempt failed
}

// greeting is what a server says about the session when it accepts a connection.
type greeting struct {
	began   time.Time // before the connection was asked for
	id      int64
	timeout time.Duration
}

func newLine(ctx context.Context, hosts []string, o *Options) *line {
	l := &line{hosts: slices.Clone(hosts), tls: o.TLS, patience: max(o.Timeout/6, leastPatience)}
	rand.Shuffle(len(l.hosts), func(i, j int) { l.hosts[i], l.hosts[j] = l.hosts[j], l.hosts[i] })
	l.ctx, l.hangUp = context.WithCancel(ctx)
	return l
}

// Init is part of zk.HostProvider. The hosts are known already, and are looked up at each connection: their addresses
// may change while a program runs.
func (l *line) Init([]string) error { return nil }

// Len is part of zk.HostProvider.
func (l *line) Len() int { return len(l.hosts) }

// Next is part of zk.HostProvider. Servers are taken in turn, without a pause as long as some were not tried. After the
// end of the session the library must look whether it was closed, which it does only when a round begins again.
func (l *line) Next() (server string, roundAgain bool) {
	l.mu.Lock()
	server = l.hosts[l.next%len(l.hosts)]
	l.next++
	failures := l.failures
	l.failures++
	l.mu.Unlock()
	if failures >= len(l.hosts) {
		rounds := min(failures/len(l.hosts)-1, 10)
		enginekit.Pause(l.ctx, min(firstPause<<rounds, mostPause))
	}
	return server, l.ctx.Err() != nil
}

// Connected is part of zk.HostProvider.
func (l *line) Connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures, l.err = 0, nil
}

// dial is the library's zk.Dialer.
func (l *line) dial(network, address string, _ time.Duration) (net.Conn, error) {
	if l.ctx.Err() != nil {
		return nil, errHungUp
	}
	ctx, cancel := context.WithTimeout(l.ctx, min(l.patience, mostDial))
	defer cancel()
	began := time.Now()
	conn, err := openConn(ctx, l.tls, network, address)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.ctx.Err() != nil {
		_ = conn.Close()
		err = errHungUp
	}
	if err != nil {
		if l.ctx.Err() == nil {
			l.err = err
		}
		return nil, err
	}
	if l.conn != nil { // the library leaves the connection of an expired session to the garbage collector
		_ = l.conn.Close()
	}
	l.conn = &tap{Conn: conn, line: l, began: began}
	return l.conn, nil
}

func openConn(ctx context.Context, config *tls.Config, network, address string) (net.Conn, error) {
	if config == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

// greeted returns what the server of the connection said.
func (l *line) greeted() greeting {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.greeting
}

// cut ends the connection. The library makes another, unless the line was hung up.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // it is closed already, or the library notices
	}
}

// failure returns why no server can be reached, or nil.
func (l *line) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// greetingSize is how long the part of a server's first packet is that matters: its length, the version of the
// protocol, the timeout in milliseconds and the session's id.
const greetingSize = 4 + 4 + 4 + 8

// tap is a connection that reads along until the server has said how long the session lasts.
type tap struct {
	net.Conn
	line  *line
	began time.Time
	head  []byte // of what came in; nil once it was understood
	done  bool
}

// Read reads along. It is called by one goroutine at a time.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if t.done {
		return n, err
	}
	t.head = append(t.head, p[:n]...)
	if len(t.head) >= greetingSize {
		t.understand()
	}
	if err != nil && !t.done {
		t.line.refused(err)
	}
	return n, err
}

func (t *tap) understand() {
	g := greeting{
		began:   t.began,
		timeout: time.Duration(int32(binary.BigEndian.Uint32(t.head[8:]))) * time.Millisecond,
		id:      int64(binary.BigEndian.Uint64(t.head[12:])),
	}
	t.head, t.done = nil, true
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	t.line.greeting = g
}

// refused notes why a server did not greet us.
func (l *line) refused(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil { // otherwise we have cut it ourselves
		l.err = err
	}
}

// SetReadDeadline bounds the wait for the greeting.
func (t *tap) SetReadDeadline(end time.Time) error {
	if most := time.Now().Add(min(t.line.patience, mostGreeting)); !t.done && end.After(most) {
		end = most
	}
	return t.Conn.SetReadDeadline(end)
}
