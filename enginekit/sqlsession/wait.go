// Waits in the server, each in a goroutine of its own on a connection of the pool. lock_state.go sends requests here;
// poll.go serves those without a connection.

package sqlsession

import (
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// verdict is how one slice of a wait has ended.
type verdict uint8

const (
	settled verdict = iota // granted, failed or in doubt: others go on with it
	again                  // the slice is over, or an operator has interrupted it
	foreign                // the number belongs to another lock
	stopped                // it is not wanted any more, and nothing is left in the server
	unused                 // the connection had ended before
)

// toWait makes e wait, and returns how. The caller holds Core.mu.
func (d *Core) toWait(e *Entry) (next func()) {
	e.phase = waiting
	return func() {
		if !d.spawn(e.wait) { // ends with e, at the latest by Close
			e.end(driver.ErrClosed)
		}
	}
}

// wait waits in the server until the lock is granted, the wait is stopped, or its connection ends. It is the goroutine
// of the wait.
func (e *Entry) wait() {
	for {
		c, err := e.fromPool()
		switch {
		case e.Stopped():
			if c != nil {
				e.d.toPool(c)
			}
			e.end(driver.ErrClosed) // settled long ago, with its own reason
			return
		case err != nil:
			e.fail(err)
			return
		case c == nil:
			if e.poll() {
				return
			}
			continue
		}
		v := again
		for v == again {
			v = e.waitOn(c)
		}
		switch v {
		case settled:
			return
		// On the shared connections it finds another number.
		case foreign:
			e.d.toPool(c)
			e.moveOn()
			return
		case stopped:
			e.d.toPool(c)
			e.end(driver.ErrClosed)
			return
		case again, unused: // unused: with another connection
		}
	}
}

// lookLater is the pause after a look for which there was no connection.
const lookLater = time.Second

// waitOn waits for one slice on c, which holds nothing. Meanwhile it looks who is in the way, over a shared connection,
// because c is busy with the wait.
func (e *Entry) waitOn(c *Conn) verdict {
	var look <-chan time.Time // nil is never
	pause := e.d.dialect.LookAfter(e)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	if pause > 0 {
		look = timer.C
	}
	// looked brings when to look again; 0 means never. Both are buffered, so that a job never waits for this goroutine.
	answer, looked := make(chan verdict, 1), make(chan time.Duration, 1)
	c.Submit(Job{
		Run:  func(c *Conn) { answer <- e.slice(c) },
		Dead: func(error) { answer <- unused },
	})
	for {
		select {
		case v := <-answer:
			return v
		case <-look:
			e.d.OnShared(Job{
				Run: func(shared *Conn) {
					if shared.session.LookBeside(e, c) {
						looked <- pause
						return
					}
					looked <- 0
				},
				Dead: func(error) { looked <- lookLater },
			})
		case later := <-looked:
			if later > 0 {
				timer.Reset(later)
			}
		case <-e.stop:
			return e.interrupt(c, answer)
		}
	}
}

// slice is one statement that waits, in c's goroutine.
func (e *Entry) slice(c *Conn) verdict {
	d := e.d
	d.mu.Lock()
	if e.ending {
		d.mu.Unlock()
		return stopped
	}
	e.c = c
	c.holds[e] = struct{}{}
	d.mu.Unlock()
	a, err := c.session.Wait(e)
	d.mu.Lock()
	e.untried = false // the next slice is an ordinary one
	if c.broken != nil && errors.Is(err, ErrUnasked) {
		e.leaves()
		d.mu.Unlock()
		return unused
	}
	d.mu.Unlock()
	switch {
	case c.broken != nil:
		return settled // by died
	case a.Foreign:
		return e.leave(c, foreign)
	case a.Granted && !e.Stopped():
		return e.win(c, a)
	}
	// What was to interrupt the wait may still be on its way. The statement that gives the lock back takes the blow.
	v := e.leave(c, again)
	switch {
	case v == settled:
	case e.Stopped():
		return stopped
	case err != nil:
		d.toPool(c)
		e.fail(err)
		return settled
	}
	return v
}

// freshness is the fraction of the timeout for which a grant may be trusted from when its statement was sent.
const freshness = 4

// win records that the wait has brought the lock. Nothing says when it was given: the answer may have come long ago to
// a client that stood still, and the server may have ended the session since. A sign of life finds out. A ping that is
// refused is none: a proxy answers so by itself when the session behind it is gone.
func (e *Entry) win(c *Conn, a Answer) verdict {
	if asked := e.d.Clock(); asked-c.sent > e.d.config.Timeout/freshness {
		c.session.Ping()
		if time.Duration(c.pinged.Load()) < asked {
			c.Fail(ErrLost) // keeps the reason of a ping that has ended the connection
		}
	}
	if c.broken == nil {
		e.accept(c, a)
	}
	return settled // by died, if the connection has ended
}

// leave gives back what the session may have got, and returns v unless that ends the connection.
func (e *Entry) leave(c *Conn, v verdict) verdict {
	if err := c.session.Leave(e); err != nil {
		c.Fail(err) // it may be held, and nobody would know
	}
	if c.broken != nil {
		return settled // by died
	}
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.leaves()
	return v
}
