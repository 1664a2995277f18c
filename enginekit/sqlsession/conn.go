// Connections: one session, its goroutine's queue, and what is kept about it. heartbeat.go records signs of life;
// pool.go chooses connections.

package sqlsession

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/interlock-go/interlock/enginekit"
)

// Conn is one session of the server. It is pinned: nobody else shares it, and its locks end with it. One goroutine runs
// its statements, one after the other, and watches the socket in between, so that the end of a session is noticed at
// once and not at its next statement. While it rests, another goroutine may run a statement; see lend.go.
//
// Statements never carry the caller's context. When that ended, the client library would close the connection, and
// every hold of the session would be gone. A caller that does not want an answer any more leaves it to the goroutine.
// What bounds a statement is the heartbeat: it closes a connection whose session the server may have ended for want of
// a sign of life.
type Conn struct {
	d       *Core
	raw     net.Conn // below TLS; closed by Kill, from any goroutine
	session Session  // called only by the goroutine that runs statements
	prompt  Prompt   // session, if it is one
	// broken is why the connection is not used any more. Only the goroutine that runs statements touches it, until done
	// is closed.
	broken error

	sent time.Duration // when the last statement was, since Core.born; for the goroutine that runs statements

	confirmed atomic.Int64 // when the last sign of life that was answered was sent, since Core.born
	pinged    atomic.Int64 // when the last ping or the set-up was, likewise
	pinging   atomic.Bool  // a ping has been submitted, and has not been answered
	busy      atomic.Int64 // since when the server owes an answer, likewise; 0 if it owes none
	allowed   atomic.Int64 // how long it may owe that one

	mu     sync.Mutex    // guards what follows; nothing blocks under it
	queue  []Job         // jobs that were not begun
	armed  bool          // the goroutine watches the socket: a deadline rouses it, not wake
	parked bool          // the goroutine waits and does not watch, so the connection can be lent
	lent   *loan         // to another goroutine, which runs a statement; see lend.go
	begun  bool          // the first job goes on with what was begun by another goroutine
	ended  bool          // no job is taken any more
	used   time.Duration // when it last had something to do, since Core.born

	wake chan struct{} // buffer of one: there is a job, or the connection must end
	done chan struct{} // closed when the goroutine has ended and died has run

	// Core.mu guards these.
	holds   map[*Entry]struct{} // requests that are asked for, wait, or are held on it
	waits   bool                // it belongs to the pool; constant
	tainted bool                // an interruption may still hit it, so it is not used again
	leaving bool                // the server has refused to take something back on it, so it gets nothing more
	refused enginekit.Refusals[*Entry]
	freed   time.Duration // when it was last given back to the pool
}

// NewConn returns a connection around the socket raw, below TLS. s speaks for it, and uses the same socket through its
// client library. waits says whether it is for the pool. It belongs to the caller until [Core.Adopt] takes it.
func (d *Core) NewConn(raw net.Conn, waits bool, s Session) *Conn {
	prompt, _ := s.(Prompt)
	return &Conn{
		d: d, raw: raw, waits: waits, session: s, prompt: prompt,
		wake: make(chan struct{}, 1), done: make(chan struct{}), holds: make(map[*Entry]struct{}),
	}
}

// Job is something to do with a connection. Exactly one of Run and Dead is called, once; both must be set.
type Job struct {
	Run func(c *Conn) // in the goroutine of the connection; it may run statements
	// inline is tried first, in the goroutine that submits the job. It returns false if the connection cannot be lent.
	inline func(c *Conn) bool
	Dead   func(err error) // called instead, if the connection has ended and nothing was sent
	any    bool            // any shared connection will do
}

// Confirmed returns when the last sign of life that was answered was sent; see [driver.Session]. From that instant the
// session has at least its timeout before it: the server counts from the end of the statement.
func (c *Conn) Confirmed() time.Time { return c.d.born.Add(c.lastSign()) }

// lastSign is Confirmed as time since Core.born.
func (c *Conn) lastSign() time.Duration { return time.Duration(c.confirmed.Load()) }

// Discard closes a connection that [Core.Adopt] has not taken.
func (c *Conn) Discard() { c.hangUp() }

// hangUp closes the connection. The deadline bounds the client library's goodbye.
func (c *Conn) hangUp() {
	_ = c.raw.SetDeadline(time.Now().Add(goodbye)) // fails only if the connection is closed
	c.session.Close()
	_ = c.raw.Close()
}

// Session returns the session that was given to [Core.NewConn].
func (c *Conn) Session() Session { return c.session }

// Waits reports whether c belongs to the pool of connections that wait.
func (c *Conn) Waits() bool { return c.waits }

// Submit runs j after everything that was submitted before, in the connection's goroutine. It does not wait for that.
// If the connection has ended, or ends before, it calls j.Dead, perhaps before Submit returns. So the caller must not
// hold a mutex that j.Dead takes.
func (c *Conn) Submit(j Job) {
	if j.inline != nil && j.inline(c) {
		return
	}
	j.inline = nil // it is for this goroutine; a later submit is another's
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

// rouse makes the goroutine look at its queue. The caller holds Conn.mu.
func (c *Conn) rouse() {
	if c.armed {
		// Under the mutex: after the goroutine has removed the deadline, it must not be set again.
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

// load is how many jobs are before a new one, with the one that is running.
func (c *Conn) load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.queue)
	if c.busy.Load() != 0 {
		n++
	}
	return n
}

// The goroutine of a connection: it runs jobs, rests, and watches the socket. died in release.go is told of the end.

// loop runs the jobs until the connection ends.
func (c *Conn) loop() {
	defer c.bequeath()
	timer := time.NewTimer(c.d.config.Quiet)
	defer timer.Stop()
	for c.broken == nil {
		j, ok := c.take()
		switch {
		case ok:
			j.Run(c)
		case !c.idle(timer):
			return
		}
	}
}

// take returns the next job. The slot in the queue is cleared, so that what the job refers to can be freed.
func (c *Conn) take() (j Job, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.used = c.d.Clock()
		return j, false
	}
	j, c.begun = c.queue[0], false
	c.queue[0] = Job{}
	if c.queue = c.queue[1:]; len(c.queue) == 0 {
		c.queue = nil
	}
	return j, true
}

// idle waits for a job or for the socket. It returns false when the connection must end.
func (c *Conn) idle(timer *time.Timer) bool {
	for c.resting() {
		timer.Reset(c.d.config.Quiet)
		select {
		case <-c.wake:
		case <-timer.C:
		}
		// A borrower's context is looked at once per Quiet, which costs no timer of its own.
		c.callBack()
	}
	if c.hasWork() || !c.watch() {
		return c.goesOn()
	}
	// The server has said something without being asked, most likely goodbye. A statement finds out what it was.
	c.session.Ping()
	return true
}

// resting reports whether there is nothing to do but wait: another goroutine runs a statement, or there has been no job
// for less than Quiet. It sets parked accordingly.
func (c *Conn) resting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked = c.lent != nil || !c.works() && c.d.Clock()-c.used < c.d.config.Quiet
	return c.parked
}

// hasWork reports whether the goroutine must do something now.
func (c *Conn) hasWork() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.works()
}

// works is hasWork for a caller that holds Conn.mu.
func (c *Conn) works() bool { return len(c.queue) > 0 || c.ended || c.broken != nil }

// watch waits until there is something to read from the socket, and reports true, or until the goroutine is roused. It
// takes nothing from the socket.
func (c *Conn) watch() (spoken bool) {
	s, ok := c.raw.(syscall.Conn)
	if !ok { // not a socket of the system: wait for jobs alone
		<-c.wake
		return false
	}
	socket, err := s.SyscallConn()
	if err != nil {
		return true
	}
	c.mu.Lock()
	// Looked at under the mutex that sets armed, so that a job which comes now rouses by the deadline.
	if c.works() {
		c.mu.Unlock()
		return false
	}
	c.armed = true
	c.mu.Unlock()
	err = socket.Read(readable())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	_ = c.raw.SetReadDeadline(time.Time{}) // fails only if the connection is closed
	return err == nil || !isTimeout(err)
}

// isTimeout reports whether err is the deadline that rouse has set.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isOpen reports whether the connection takes jobs.
func (c *Conn) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

// goesOn is isOpen for the goroutine itself: what was begun is finished first.
func (c *Conn) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended || c.begun
}

// end makes the goroutine end after the jobs that were begun. It says goodbye to the server.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.rouse()
}

// Kill ends the connection at once, whatever it is doing.
func (c *Conn) Kill() {
	_ = c.raw.Close() // the goroutine finds out
	c.end()
}

// goodbye bounds the last message to the server.
const goodbye = 100 * time.Millisecond

// bequeath ends the connection and tells everybody who still wanted something of it. It is the last thing that the
// goroutine does.
func (c *Conn) bequeath() {
	c.hangUp()
	c.mu.Lock()
	c.ended = true
	left := c.queue
	c.queue = nil
	c.mu.Unlock()
	if c.broken == nil {
		c.broken = ErrLost
	}
	c.d.died(c)
	close(c.done) // not before: whoever waits for it looks at what died has decided
	// Nothing of them was sent, whatever ended the connection.
	for _, j := range left {
		j.Dead(fmt.Errorf("%w: %w", ErrLost, c.broken))
	}
}
