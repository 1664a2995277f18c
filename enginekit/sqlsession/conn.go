package sqlsession

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is one session of the server, pinned: it is never shared with anybody else, and its locks end with it. One
// goroutine runs its statements, one after the other, and watches the socket in between, so that the end of a session
// is noticed at once and not at its next statement. While it rests another may run one; see lend.go.
//
// Statements never carry the caller's context: when that ends, the client library would close the connection, and every
// hold of the session would be gone. Who no longer wants an answer leaves it to the goroutine. What bounds a statement
// is the heartbeat, which closes a connection whose session the server may have ended for want of a sign of life.
type Conn struct {
	d       *Core
	raw     net.Conn // below TLS
	session Session
	prompt  Prompt // session, if it is one
	broken  error  // of who runs statements until done is closed: why the connection is not used any more

	confirmed atomic.Int64 // when the last answered statement was sent, since Core.born
	busy      atomic.Int64 // since when the server owes an answer, since Core.born; 0 if it owes none
	allowed   atomic.Int64 // how long it may owe this one

	mu     sync.Mutex // guards what follows; nothing blocks under it
	queue  []Job
	armed  bool          // the goroutine watches the socket and must be roused by a deadline
	parked bool          // the goroutine waits and does not watch the socket, so the connection can be lent
	lent   *loan         // to another goroutine, which runs a statement; see lend.go
	begun  bool          // the first in the queue goes on with what was begun there
	ended  bool          // no job is taken any more
	used   time.Duration // when it last had something to do

	wake chan struct{} // has one place; there is something in the queue, or the connection is to end
	done chan struct{} // closed when the goroutine has ended

	// Guarded by Core.mu.
	holds   map[*Entry]struct{} // what is held on it
	waits   bool                // it is one of the pool of waits
	tainted bool                // an interruption of it may still be under way, so it is not used again
	freed   time.Duration       // when it was last given back to the pool
}

// NewConn returns a connection around the socket raw, below TLS, for which s speaks: s uses the same socket, through
// its client library. waits says whether it is for the pool. It belongs to the caller until [Core.Adopt] takes it.
func (d *Core) NewConn(raw net.Conn, waits bool, s Session) *Conn {
	prompt, _ := s.(Prompt)
	return &Conn{
		d: d, raw: raw, waits: waits, session: s, prompt: prompt,
		wake: make(chan struct{}, 1), done: make(chan struct{}), holds: make(map[*Entry]struct{}),
	}
}

// Job is something to do with a connection. Either Run or Dead is called, once; both must be set.
type Job struct {
	Run func(c *Conn) // in the goroutine of the connection; it may run statements
	// tried first, in the goroutine of who submits it; false if the connection cannot be lent to that
	inline func(c *Conn) bool
	Dead   func(err error) // called instead, without anything having been sent, if the connection has ended
	any    bool            // any shared connection will do
}

// Confirmed returns when the last statement that was answered was sent; see [driver.Session]. A session that answers
// has its timeout before it from then at least: the server counts from the end of the statement.
func (c *Conn) Confirmed() time.Time { return c.d.born.Add(c.lastSign()) }

func (c *Conn) lastSign() time.Duration { return time.Duration(c.confirmed.Load()) }

// Discard closes a connection that [Core.Adopt] has not taken.
func (c *Conn) Discard() { c.hangUp() }

// hangUp closes the connection.
func (c *Conn) hangUp() {
	_ = c.raw.SetDeadline(time.Now().Add(goodbye)) // fails only if the connection is closed
	c.session.Close()
	_ = c.raw.Close()
}

// Session returns what speaks for c, as it was given to [Core.NewConn].
func (c *Conn) Session() Session { return c.session }

// Waits reports whether c is one of those that wait.
func (c *Conn) Waits() bool { return c.waits }

// Submit runs j after all that was submitted before, in the connection's goroutine. It does not wait for it. If the
// connection has ended or ends before, j.Dead is called, perhaps before Submit returns, so no mutex must be held that
// j.Dead takes.
func (c *Conn) Submit(j Job) {
	if j.inline != nil && j.inline(c) {
		return
	}
	j.inline = nil // whoever submits it again does so for others
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		j.Dead(ErrLost)
		return
	}
	c.queue = append(c.queue, j)
	c.rouse()
	c.mu.Unlock()
}

// rouse makes the goroutine look at its queue. The caller holds conn.mu.
func (c *Conn) rouse() {
	if c.armed {
		// Under the mutex: after the goroutine has taken the deadline away again it must not come back.
		_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // fails if the connection is closed, which rouses as well
		return
	}
	select {
	case c.wake <- struct{}{}:
	default: // it will look
	}
}

// strays takes the jobs out of the queue that another connection can do as well.
func (c *Conn) strays() (all []Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(j Job) bool {
		if j.any {
			all = append(all, j)
		}
		return j.any
	})
	return all
}

// load is how many jobs are before a new one.
func (c *Conn) load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.queue)
	if c.busy.Load() != 0 {
		n++
	}
	return n
}
