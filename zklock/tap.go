// What is read along on a connection of the library: the greeting, and when the library sets its watches again. dial.go
// makes the connections.

package zklock

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"
)

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
