package mysqllock

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is one session of the server, pinned: it is never shared with anybody else, and its locks end with it. One
// goroutine runs its statements, one after the other, and watches the socket in between, so that the end of a session
// is noticed at once and not at its next statement.
//
// Statements never carry the caller's context: when that ends, the client library would close the connection, and every
// hold of the session would be gone. Who no longer wants an answer leaves it to the goroutine. What bounds a statement is
// the heartbeat, which closes a connection whose session the server may have ended for want of a sign of life.
type conn struct {
	d      *Driver
	my     session
	raw    net.Conn // below TLS
	id     uint64   // CONNECTION_ID(), which the server uses again after a restart
	server string   // which server it is; see serverOf
	mark   string   // the lock that the session has taken for itself: it tells sessions apart for ever

	stmts  [statements]sqldriver.Stmt // of the goroutine
	broken error                      // of the goroutine until done is closed: why the connection is not used any more

	confirmed atomic.Int64 // when the last answered statement was sent, since Driver.born
	busy      atomic.Int64 // since when the server owes an answer, since Driver.born; 0 if it owes none
	allowed   atomic.Int64 // how long it may owe this one

	mu    sync.Mutex // guards what follows; nothing blocks under it
	queue []job
	armed bool // the goroutine watches the socket and must be roused by a deadline
	ended bool // no job is taken any more

	wake chan struct{} // has one place; there is something in the queue, or the connection is to end
	done chan struct{} // closed when the goroutine has ended

	// Guarded by Driver.mu.
	holds   map[*entry]struct{} // what is held on it
	waits   bool                // it is one of the pool of waits
	tainted bool                // a KILL QUERY for it may still be under way, so it is not used again
	freed   time.Duration       // when it was last given back to the pool
}

// session is what is needed of the client library's connection.
type session interface {
	sqldriver.Conn
	sqldriver.ConnPrepareContext
	sqldriver.ExecerContext
	sqldriver.QueryerContext
}

// job is something to do with a connection.
type job struct {
	run  func(c *conn)
	dead func(err error) // called instead, without anything having been sent, if the connection has ended
}

// background is the context of every statement; see conn. For others the client library starts to watch them.
var background = context.Background() //nolint:forbidigo // statements never carry a caller's context

// Confirmed is when the last statement that was answered was sent. A session that answers has its timeout before it from
// then at least: the server counts from the end of the statement.
func (c *conn) Confirmed() time.Time { return c.d.born.Add(c.lastSign()) }

func (c *conn) lastSign() time.Duration { return time.Duration(c.confirmed.Load()) }

// submit has j run after all that was submitted before, by the connection's goroutine. Either j.run or j.dead is called;
// the latter perhaps at once, so Driver.mu must not be held.
func (c *conn) submit(j job) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		j.dead(errLost)
		return
	}
	c.queue = append(c.queue, j)
	c.rouse()
	c.mu.Unlock()
}

// rouse makes the goroutine look at its queue. The caller holds conn.mu.
func (c *conn) rouse() {
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

// load is how many jobs are before a new one.
func (c *conn) load() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.queue)
	if c.busy.Load() != 0 {
		n++
	}
	return n
}

// quiet is how long the queue must be empty before the socket is watched. Watching costs the next job some microseconds,
// which a busy connection is spared.
const quiet = 5 * time.Millisecond

// loop runs the jobs until the connection ends.
func (c *conn) loop() {
	defer c.bequeath()
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for c.broken == nil {
		j, ok := c.take()
		switch {
		case ok:
			j.run(c)
		case !c.idle(timer):
			return
		}
	}
}

func (c *conn) take() (j job, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return j, false
	}
	j = c.queue[0]
	c.queue[0] = job{}
	if c.queue = c.queue[1:]; len(c.queue) == 0 {
		c.queue = nil
	}
	return j, true
}

// idle waits for a job or for the socket. It returns false when the connection is to end.
func (c *conn) idle(timer *time.Timer) bool {
	timer.Reset(quiet)
	select {
	case <-c.wake:
		return c.goesOn()
	case <-timer.C:
	}
	if !c.watch() {
		return c.goesOn()
	}
	// The server has said something without being asked, most likely goodbye. A statement finds out what.
	c.ping()
	return true
}

// watch waits until there is something to be read from the socket, and reports true, or until the goroutine is roused.
// It takes nothing from the socket.
func (c *conn) watch() (readable bool) {
	s, ok := c.raw.(syscall.Conn)
	if !ok { // not a socket of the system's: wait for jobs alone
		<-c.wake
		return false
	}
	socket, err := s.SyscallConn()
	if err != nil {
		return true
	}
	c.mu.Lock()
	if len(c.queue) > 0 || c.ended {
		c.mu.Unlock()
		return false
	}
	c.armed = true
	c.mu.Unlock()
	err = socket.Read(peek)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	_ = c.raw.SetReadDeadline(time.Time{}) // fails only if the connection is closed
	return err == nil || !isTimeout(err)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// goesOn reports that the connection is not to end.
func (c *conn) goesOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

// end makes the goroutine end after the jobs that it has begun. It says goodbye to the server.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.rouse()
}

// kill ends the connection at once, whatever it is doing.
func (c *conn) kill() {
	_ = c.raw.Close() // the goroutine finds out
	c.end()
}

// goodbye bounds the last message to the server.
const goodbye = 100 * time.Millisecond

// bequeath ends the connection and tells everybody who still wanted something of it.
func (c *conn) bequeath() {
	_ = c.raw.SetDeadline(time.Now().Add(goodbye)) // fails only if the connection is closed
	_ = c.my.Close()                               // an error says that the server hears no goodbye, but it hears the end
	_ = c.raw.Close()
	c.mu.Lock()
	c.ended = true
	left := c.queue
	c.queue = nil
	c.mu.Unlock()
	if c.broken == nil {
		c.broken = errLost
	}
	c.d.died(c)
	close(c.done)            // not before: who waits for it looks at what died has decided
	for _, j := range left { // nothing of them was sent, whatever ended the connection
		j.dead(fmt.Errorf("%w: %w", errLost, c.broken))
	}
}
