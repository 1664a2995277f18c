// The goroutine of a connection: it runs jobs, rests, and watches the socket. conn.go submits the jobs; died in
// release.go is told of the end.

package sqlsession

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

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
