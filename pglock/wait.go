package pglock

import "time"

// verdict is how one slice of a wait has ended.
type verdict uint8

const (
	settled verdict = iota // granted, failed or in doubt: others go on with it
	again                  // the slice is over, or an operator has interrupted it
	foreign                // the number belongs to another name
	stopped                // it is not wanted any more, and nothing is left in the server
	unused                 // the connection had ended before
)

// toWait makes e wait, and returns how. The caller holds Driver.mu.
func (d *Driver) toWait(e *entry) (next func()) {
	e.phase = waiting
	return func() {
		if !d.spawn(e.wait) { // ends with e, at the latest by Close
			e.end(errClosed)
		}
	}
}

// wait waits in the server until the lock is granted, the wait is stopped, or its connection ends.
func (e *entry) wait() {
	for {
		c := e.fromPool()
		switch {
		case e.isStopped():
			if c != nil {
				e.d.toPool(c)
			}
			e.end(errClosed) // settled long ago, with its own reason
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
		case foreign: // on the shared connections it finds another number
			e.d.toPool(c)
			e.d.onShared(job{run: e.moveOn, dead: e.fail})
			return
		case stopped:
			e.d.toPool(c)
			e.end(errClosed)
			return
		case again, unused: // the latter: with another connection
		}
	}
}

// waitOn waits for one slice on c, which holds nothing.
func (e *entry) waitOn(c *conn) verdict {
	var note <-chan time.Time // nil, which is never, for a wait that brings its note along
	if e.hot {
		timer := time.NewTimer(noteAfter)
		defer timer.Stop()
		note = timer.C
	}
	answer := make(chan verdict, 1)
	c.submit(job{
		run:  func(c *conn) { answer <- e.slice(c) },
		dead: func(error) { answer <- unused },
	})
	for {
		select {
		case v := <-answer:
			return v
		case <-note:
			e.d.onShared(job{run: func(shared *conn) { e.noteOn(shared, c) }, dead: func(error) {}}) // he is not told then
		case <-e.stop:
			return e.interrupt(c, answer)
		}
	}
}

// slice is one statement that waits, in c's goroutine.
func (e *entry) slice(c *conn) verdict {
	d := e.d
	d.mu.Lock()
	if e.ending {
		d.mu.Unlock()
		return stopped
	}
	e.c = c
	c.holds[e] = struct{}{}
	num := e.num
	d.mu.Unlock()
	token, last, err := e.getLock(c, num)
	switch {
	case c.broken != nil && stateOf(err) == stateIdle: // the server had ended the session before
		d.mu.Lock()
		defer d.mu.Unlock()
		e.leaves()
		return unused
	case c.broken != nil:
		return settled // by died
	case err == nil && token == 0: // it has the lock, whose number belongs to another name
		return e.leaveLock(c, num, foreign)
	case err == nil && e.isStopped():
		return e.leaveLock(c, num, stopped)
	case err == nil && d.clock()-c.lastSign() > d.opts.Timeout/freshness:
		// Nothing says when the lock was given: the answer may have come long ago to a client that stood still, and the server
		// may have ended the session since. A sign of life finds out.
		if c.ping(); c.broken != nil {
			return settled
		}
		fallthrough
	case err == nil:
		e.granted(c, token, last)
		return settled
	case stateOf(err) == stateLockTimeout:
		return e.leaveLock(c, num, again)
	}
	// What was to cancel the wait may be on its way still: the statements that give the lock back take the blow.
	switch v := e.leaveLock(c, num, stopped); {
	case v == settled || e.isStopped():
		return v
	case isPassing(err):
		return again
	}
	d.toPool(c)
	e.fail(err)
	return settled
}

// freshness is the part of the timeout for which a grant may be trusted from when its statement was sent.
const freshness = 4

// leaveLock gives back what the session may have got, and returns v unless that ends the connection.
func (e *entry) leaveLock(c *conn, num int64, v verdict) verdict {
	if err := c.unlockIfHeld(num); err != nil && c.broken == nil {
		c.broken = err // it may be held, and nobody would know
	}
	if c.broken != nil {
		return settled // by died
	}
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.leaves()
	return v
}

// getLock runs the statement that waits, and tells who is in the way before. Without an error the session has the lock,
// and token is 0 if its number belongs to another name.
func (e *entry) getLock(c *conn, num int64) (token, last uint64, err error) {
	allowed := e.d.opts.Slice + e.d.opts.Timeout
	if e.hot {
		e.hot = false // the next slice is an ordinary one
		found, err := c.execFor(allowed, stmtLock, e.grantParams(num)...)
		token, last = minted(found)
		return token, last, err
	}
	x, err := c.say(allowed, stmtNote, stmtLock, e.noteParams(c, num), e.grantParams(num))
	if err != nil {
		return 0, 0, err
	}
	found, err := x.hear()
	if err == nil || !isBroken(err) { // a note that was refused is nobody's loss
		e.tell(e.inTheWay(found)) // the server goes on with the second statement meanwhile
		found, err = x.hear()
	}
	if err := x.end(err); err != nil {
		return 0, 0, err
	}
	token, last = minted(found)
	return token, last, nil
}

// minted reads the tokens of a grant; there are none if the number belongs to another name.
func minted(found rows) (token, last uint64) {
	if len(found) != 1 {
		return 0, 0
	}
	return uint64(int64Of(found[0][0])), uint64(int64Of(found[0][1]))
}
