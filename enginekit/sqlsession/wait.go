// Waits in the server, each in a goroutine of its own on a connection of the pool. lock_state.go sends requests here.

package sqlsession

import (
	"errors"
	"math/rand/v2"
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

// Polling: waits for which the pool has no connection. The tries are those of ask.go.

// poll is a wait without a connection of its own: after a pause it tries once. It reports whether the request is
// settled.
func (e *Entry) poll() (done bool) {
	d := e.d
	// The caller is told who is in the way before the first pause.
	if !e.HasSeen() && !e.look() {
		return false
	}
	d.mu.Lock()
	d.polling++
	pause := pollPause(d.polling, d.pool.slow)
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.polling--
	}()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.pool.freed:
		return false // fromPool finds out whether it was quick enough
	case <-e.stop:
		return false // wait ends it
	}
	return e.pollOnce()
}

// slowPoll is the longest pause between polls of a server that was too slow to open connections mostSlow times or more.
const slowPoll = 20 * time.Millisecond << (2 * mostSlow)

// pollPause is about 20 ms. It is longer in a crowd, which together asks at most some 500 times a second. It is also
// longer for a server that is too slow to open connections, up to 1.3 s. That bound holds for a crowd too, whose pauses
// would be minutes otherwise: nothing ends them when the server has recovered or the lock is free.
func pollPause(crowd, slow int) time.Duration {
	mean := max(20*time.Millisecond, time.Duration(crowd)*2*time.Millisecond)
	mean = max(mean, min(mean<<(2*slow), slowPoll))
	return mean/2 + rand.N(mean)
}

// look asks who is in the way, so that the caller is told before it waits. It returns false if the wait is stopped.
func (e *Entry) look() bool {
	word := make(chan struct{})
	e.d.OnShared(Job{
		Run: func(c *Conn) {
			defer close(word)
			c.session.Look(e)
		},
		Dead: func(error) { close(word) }, // the try will find out
	})
	select {
	case <-word:
		return true
	case <-e.stop:
		return false
	}
}

// pollOnce tries once over a shared connection, unless the lock is this core's or being asked for by it.
func (e *Entry) pollOnce() (done bool) {
	d := e.d
	d.mu.Lock()
	p := d.lockState(e.lock)
	if p.asker != nil || p.keepOut(e) || e.ending {
		d.tidy(e.lock)
		d.mu.Unlock()
		return false
	}
	p.asker = e
	d.mu.Unlock()
	word := make(chan bool, 1)
	d.onSharedBeside(e, Job{
		Run:  func(c *Conn) { word <- e.pollTry(c) },
		Dead: func(err error) { word <- e.polled(err) },
	})
	return <-word // a statement without an answer ends with its connection
}

// pollTry is one try, in the connection's goroutine.
func (e *Entry) pollTry(c *Conn) (done bool) {
	if !e.begins(c) {
		return false
	}
	a, err := c.session.Try(e)
	switch {
	case c.broken != nil && errors.Is(err, ErrUnasked):
		return e.polled(nil) // the next turn is on another connection
	case c.broken != nil:
		return true // died settles it
	case errors.Is(err, ErrUnsure):
		e.doubts(c, err)
		return true
	case err != nil:
		return e.polled(err)
	case a.Granted:
		e.accept(c, a)
		return true
	case a.Foreign:
		e.moveOnOver(c)
		return true
	}
	return e.polled(nil)
}

// polled ends a turn that brought nothing. It reports true if the error ends the request.
func (e *Entry) polled(err error) (done bool) {
	if err != nil && !errors.Is(err, ErrLost) { // ErrLost: the connection had ended and was not asked
		e.fail(err)
		return true
	}
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	d.mu.Unlock()
	runAll(next)
	return false
}

// Interrupting a wait in the server.

const (
	// interruptFirst and interruptMost bound the pauses between interruptions of one wait. An interruption that arrives
	// before the wait has begun does nothing, so it is repeated.
	interruptFirst = 3 * time.Millisecond
	interruptMost  = 100 * time.Millisecond

	// interruptTime is the time after which the connection is given up instead.
	interruptTime = time.Second
)

// interrupt ends a wait in the server, over another connection, and returns its verdict. It runs in the goroutine of
// the wait.
func (e *Entry) interrupt(c *Conn, answer <-chan verdict) verdict {
	end := time.NewTimer(interruptTime)
	defer end.Stop()
	for pause := interruptFirst; ; pause = min(2*pause, interruptMost) {
		word := make(chan error, 1)
		e.d.OnShared(Job{
			Run:  func(shared *Conn) { word <- shared.session.Interrupt(c) },
			Dead: func(error) { word <- nil }, // nothing was sent
		})
		select {
		case err := <-word:
			if err != nil {
				// It may still hit the connection later, when something else runs on it.
				e.d.taint(c)
			}
		case <-end.C:
			e.d.taint(c)
			c.Kill()
			return <-answer
		}
		timer := time.NewTimer(pause)
		select {
		case v := <-answer:
			timer.Stop()
			return v
		case <-timer.C:
		case <-end.C:
			timer.Stop()
			c.Kill()
			return <-answer
		}
	}
}

// taint records that c must not be used again, because an interruption may hit it at any time.
func (d *Core) taint(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.tainted = true
}
