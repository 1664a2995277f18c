// The connections of one session, below the client library: which server, how long to wait for it, and what its
// greeting says. session.go gives a line to the library.
//
// The library leaves it to a HostProvider and a Dialer which server is next and how long to wait for it, and does not
// tell what the greeting says; tap reads that along. A fault of one server must not cost the session: a sixth of the
// timeout for the connection and one for the greeting are what is left when a silent server has been noticed.

package zklock

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

const (
	// mostDial bounds the attempt to reach one server, and mostGreeting the wait for its answer to the first request,
	// which the library would bound by seven session timeouts. Both are shorter for short sessions, but not below
	// leastPatience. A silent server is noticed after two thirds of the timeout, and the rest must do for one more
	// silent server.
	mostDial      = 2 * time.Second
	mostGreeting  = 3 * time.Second
	leastPatience = 250 * time.Millisecond

	// firstPause and mostPause bound the pause between two rounds in which no server of the list could be reached. It
	// doubles.
	firstPause = 50 * time.Millisecond
	mostPause  = time.Second
)

// errHungUp is why nothing is dialed any more.
var errHungUp = errors.New("the session is over")

// line is what is below the client library in one session. It chooses the server, makes the connection, reads what the
// library does not tell (the negotiated timeout), and cuts the connection when the session must end. The library calls
// it from one goroutine.
type line struct {
	hosts []string // in a random order of its own, so that clients spread over the servers
	tls   *tls.Config

	patience time.Duration // how long to wait for one server, at most
	watching atomic.Bool   // a watch was set, which the library may set again; see tap
	returns  func()        // called when a connection is about to be asked for with a session that there is already

	ctx    context.Context //nolint:containedctx // ends with the session: dialling and pauses end with it
	hangUp context.CancelFunc

	mu       sync.Mutex // guards what follows; nothing blocks under it
	next     int        // the index of the next host, counted on for ever
	failures int        // servers tried in vain since the last success
	conn     *tap       // the latest connection, which may be closed
	greeting greeting   // of the last connection that a server accepted
	err      error      // why the last attempt failed; nil after a success
}

// greeting is what a server says about the session when it accepts a connection.
type greeting struct {
	// The server cannot have begun to count before it was asked, so an earlier instant is the safe one.
	began   time.Time // just before the connection was asked for: trust counts from here
	id      int64
	timeout time.Duration
}

// newLine returns a line for one session, which ends with ctx. Every session has a line of its own, so a late
// connection of the last session cannot become one of the next.
func newLine(ctx context.Context, hosts []string, o *Options) *line {
	l := &line{hosts: slices.Clone(hosts), tls: o.TLS, patience: max(o.Timeout/6, leastPatience)}
	rand.Shuffle(len(l.hosts), func(i, j int) { l.hosts[i], l.hosts[j] = l.hosts[j], l.hosts[i] })
	l.ctx, l.hangUp = context.WithCancel(ctx)
	return l
}

// Init implements zk.HostProvider. The hosts are known already. They are looked up at each connection, because their
// addresses may change while a program runs.
func (l *line) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (l *line) Len() int { return len(l.hosts) }

// Next implements zk.HostProvider. Servers are taken in turn, without a pause while some were not tried. After the end
// of the session the library must look whether it was closed, and it does so only when a round begins again; hence the
// second result.
func (l *line) Next() (server string, roundAgain bool) {
	l.mu.Lock()
	server = l.hosts[l.next%len(l.hosts)]
	l.next++
	failures := l.failures
	l.failures++ // until Connected takes it back
	l.mu.Unlock()
	// Outside of the mutex, which Connected and others need. The first round has no pause, or a client whose server has
	// died would wait although the next one is well.
	if failures >= len(l.hosts) {
		// Ten doublings are beyond mostPause in any case; without the bound the shift would overflow at last.
		rounds := min(failures/len(l.hosts)-1, 10)
		enginekit.Pause(l.ctx, min(firstPause<<rounds, mostPause))
	}
	return server, l.ctx.Err() != nil
}

// Connected implements zk.HostProvider: a server has accepted us. The library calls it after the greeting, so a server
// that accepts the connection and then hangs up still counts as tried in vain.
func (l *line) Connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures, l.err = 0, nil
}

// dial is the library's zk.Dialer. Its time limit is ours, not the library's.
func (l *line) dial(network, address string, _ time.Duration) (net.Conn, error) {
	if l.ctx.Err() != nil {
		return nil, errHungUp
	}
	ctx, cancel := context.WithTimeout(l.ctx, min(l.patience, mostDial))
	defer cancel()
	began := time.Now()
	err := l.serves(ctx, address)
	var conn net.Conn
	if err == nil {
		conn, err = openConn(ctx, l.tls, network, address)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// The line may have been hung up while the connection was made.
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
	before := l.conn
	l.conn = newTap(conn, l, began, before)
	// The library leaves the connection of an expired session to the garbage collector.
	if before != nil {
		_ = before.Close()
	}
	return l.conn, nil
}

// errNotServing is the error of a server that has no leader.
var errNotServing = errors.New("the server is not part of an ensemble that has a leader")

// serves returns an error if a server that the session would come back to is silent, or serves nobody. Such a server
// must not be asked to take the session back: without its answer the session may be shorter from then on, as far as is
// known; see session.doubt. An ensemble that elects a leader for a while would cost all holds. What a server that does
// not allow the question says is no reason to pass it over.
func (l *line) serves(ctx context.Context, address string) error {
	if l.greeted().id == 0 { // there is no session yet
		return nil
	}
	answer, _, err := command(ctx, l.tls, address, "srvr")
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.Contains(answer, "not currently serving"):
		return errNotServing
	case answer == "" && err != nil && !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// openConn connects, with TLS if config is not nil. Diagnose uses it too, so its commands go the same way as requests.
func openConn(ctx context.Context, config *tls.Config, network, address string) (net.Conn, error) {
	if config == nil {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

// greeted returns what the server of the latest accepted connection said.
func (l *line) greeted() greeting {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.greeting
}

// cut ends the connection. The library makes another one, unless the line was hung up. It is how a request that will
// get no answer is ended: the library fails all that is under way on a connection that is closed.
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

// refused records why a server did not greet us. Servers say nothing else when they have no leader, or too many
// connections from one address (maxClientCnxns).
func (l *line) refused(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() == nil { // otherwise we have cut it ourselves
		l.err = err
	}
}

// What is read along on a connection of the library: the greeting, and when the library sets its watches again.

// greetingSize is the length of the part of a server's first packet that matters: its length, the version of the
// protocol, the timeout in milliseconds and the session's ID.
const greetingSize = 4 + 4 + 4 + 8

// tap is a connection that reads along until the server has said how long the session lasts. Then it keeps answers from
// the library until that has set its watches again.
//
// Before that the library reads the last transaction that it knows of, without a lock (go-zookeeper v1.0.4,
// sendSetWatches), and each answer to a request writes it. The requests cannot be held back instead: those that were
// under way when the last connection broke are sent by the library as soon as it can. A library that has no watch sets
// none, and reads nothing.
type tap struct {
	net.Conn
	line  *line
	began time.Time
	head  []byte // what came in so far; nil once it was understood
	done  bool   // it was understood

	waits   bool        // the library may have watches; constant once the greeting was understood
	asked   atomic.Bool // a request was sent whose answer names a transaction
	settled bool        // the wait is over; only Read uses it

	rewatched chan struct{} // closed by the library's first setWatches of this connection
	// Write uses these two, and understand before the library starts the goroutine that writes. The next tap reads them
	// when that has ended.
	last uint64 // the last transaction that the library knew of when it asked for the connection
	owed int    // how many setWatches that name it are to come, leftovers of earlier connections included
}

// newTap returns the tap of a connection that was asked for at began. before is the line's last one, or nil. A
// setWatches that the library could not send over that comes over this one. It looks like this one's own if no answer
// came in between.
func newTap(conn net.Conn, l *line, began time.Time, before *tap) *tap {
	t := &tap{Conn: conn, line: l, began: began, rewatched: make(chan struct{})}
	if before != nil {
		t.last, t.owed = before.last, before.owed
	}
	return t
}

// Read reads along. The library calls it from one goroutine at a time. Everything goes on to the library unchanged. The
// greeting may come in several pieces, so they are gathered.
func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if t.done {
		if n > 0 && t.waits && !t.settled && t.asked.Load() {
			t.settle()
		}
		return n, err
	}
	t.head = append(t.head, p[:n]...)
	if len(t.head) >= greetingSize {
		t.understand()
	}
	// The server has closed the connection instead of greeting us.
	if err != nil && !t.done {
		t.line.refused(err)
	}
	return n, err
}

// mostSettle bounds the wait for the library to set its watches again, in a session all of whose watches have fired.
// The wait has parts: if the machine stands still, only one of them is used up.
const (
	mostSettle  = 50 * time.Millisecond
	settleParts = 10
)

// settle waits until the library sets its watches again, once for a connection. It does not end with the session: the
// goodbye has an answer too.
func (t *tap) settle() {
	t.settled = true
	for range settleParts {
		select {
		case <-t.rewatched:
			return
		case <-time.After(mostSettle / settleParts):
		}
	}
}

// The numbers of requests in ZooKeeper's protocol (ZooDefs.OpCode). Answers to the first two name no transaction. The
// library waits for the answer to setAuth before it sends anything else, its watches included.
const (
	ping       = 11
	setAuth    = 100
	setWatches = 101
)

// Write looks for the request that sets the library's watches again, and for others before it. A packet is its length,
// the request's number, what it asks for, and more. The library sends each in one call, and calls it from one goroutine
// at a time.
func (t *tap) Write(p []byte) (int, error) {
	switch {
	case !t.done:
		t.opens(p)
	case t.waits && len(p) >= 12:
		switch binary.BigEndian.Uint32(p[8:]) {
		case ping, setAuth:
		case setWatches:
			t.rewatches(p)
		default:
			t.asked.Store(true)
		}
	}
	return t.Conn.Write(p)
}

// opens notes what the library knows when it asks for the connection, before the packet leaves. That packet is its
// length, the protocol's version, the last transaction, the timeout, the session's ID, and more.
func (t *tap) opens(p []byte) {
	if len(p) < 28 {
		return
	}
	if binary.BigEndian.Uint64(p[20:]) != 0 { // not a new session
		t.line.returns()
	}
	if last := binary.BigEndian.Uint64(p[8:]); last != t.last {
		t.last, t.owed = last, 0
	}
}

// rewatches notes that the library sets watches from the transaction that the packet names. A packet that names another
// than this connection began with was meant for an earlier one.
func (t *tap) rewatches(p []byte) {
	own := len(p) >= 20 && binary.BigEndian.Uint64(p[12:]) == t.last && t.owed > 0
	if own {
		t.owed--
	}
	if own && t.owed == 0 {
		close(t.rewatched)
		return
	}
	t.asked.Store(true) // a leftover has an answer of its own, which may come before the library sets its watches
}

// understand reads the greeting, which comes in big-endian order as in ZooKeeper's protocol.
func (t *tap) understand() {
	g := greeting{
		began:   t.began,
		timeout: time.Duration(int32(binary.BigEndian.Uint32(t.head[8:]))) * time.Millisecond,
		id:      int64(binary.BigEndian.Uint64(t.head[12:])),
	}
	t.head, t.done, t.waits = nil, true, t.line.watching.Load()
	if t.waits {
		t.owed++
	}
	t.line.mu.Lock()
	defer t.line.mu.Unlock()
	t.line.greeting = g
}

// SetReadDeadline bounds the wait for the greeting; after that it is the library's own deadline. The library sets a
// deadline before it reads the greeting, so the limit needs no timer of its own.
func (t *tap) SetReadDeadline(end time.Time) error {
	if most := time.Now().Add(min(t.line.patience, mostGreeting)); !t.done && end.After(most) {
		end = most
	}
	return t.Conn.SetReadDeadline(end)
}

// command is the method of Driver of that name, with TLS if config is not nil.
func command(ctx context.Context, config *tls.Config, addr, letters string) (answer, from string, err error) {
	conn, err := openConn(ctx, config, "tcp", addr)
	if err != nil {
		return "", "", err
	}
	from, _, _ = net.SplitHostPort(conn.LocalAddr().String())
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a read that waits for the server
	defer stop()
	defer conn.Close()
	if _, err := io.WriteString(conn, letters); err != nil {
		return "", from, err
	}
	// The server ends the connection after its answer. The bound, 1 MiB, is for a port on which something else answers
	// without an end.
	text, err := io.ReadAll(io.LimitReader(conn, 1<<20))
	if ctx.Err() != nil {
		return "", from, ctx.Err()
	}
	if len(text) > 0 { // TLS connections end without a proper close here
		err = nil
	}
	return string(text), from, err
}
