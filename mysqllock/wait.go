package mysqllock

import "time"

// verdict is how one slice of a wait has ended.
type verdict uint8

const (
	settled verdict = iota // granted, failed or in doubt: others go on with it
	again                  // the slice is over, or an operator has interrupted it
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
		c, err := e.fromPool()
		switch {
		case e.isStopped():
			if c != nil {
				e.d.toPool(c)
			}
			e.end(errClosed) // settled long ago, with its own reason
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
	answer := make(chan verdict, 1)
	c.submit(job{
		run:  func(c *conn) { answer <- e.slice(c) },
		dead: func(error) { answer <- unused },
	})
	timer := time.NewTimer(lookAfter)
	defer timer.Stop()
	for {
		select {
		case v := <-answer:
			return v
		case <-timer.C:
			if e.hasTold() {
				continue // and the timer is not set again
			}
			if e.lookFor(c) {
				timer.Reset(lookAfter)
			}
		case <-e.stop:
			return e.interrupt(c, answer)
		}
	}
}

// hasTold reports whether the caller knows that he waits, and for whom.
func (e *entry) hasTold() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.looked
}

// lookFor tells the caller who is in the way of c's wait, which the server does not say before it is over. It reports
// that it has found nobody.
func (e *entry) lookFor(c *conn) (nobody bool) {
	held, heldBy, ok := e.lookOnce()
	if !ok || heldBy == 0 || heldBy == c.id {
		return true // c's answer is on its way, or nobody answers
	}
	e.tellSeen(held)
	return false
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
	d.mu.Unlock()
	got, err := e.getLock(c)
	switch {
	case c.broken != nil:
		return settled // by died
	case got && e.isStopped():
		return e.leaveLock(c, stopped)
	case got:
		return e.mint(c)
	}
	d.mu.Lock()
	e.leaves()
	d.mu.Unlock()
	switch {
	case e.isStopped():
		// What was to interrupt the wait may be on its way still. When its answer is there it has done what it will, and this
		// statement takes the blow that is left.
		return e.leaveLock(c, stopped)
	case err != nil && !isPassing(err):
		d.toPool(c)
		e.fail(err)
		return settled
	}
	return again
}

// leaveLock gives back what the session may have got.
func (e *entry) leaveLock(c *conn, v verdict) verdict {
	if _, err := c.unlock(e.lock); err != nil && c.broken == nil {
		c.broken = err // it may be held, and nobody would know
	}
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	if c.broken != nil {
		e.c = c
		c.holds[e] = struct{}{}
		return settled // by died
	}
	e.leaves()
	return v
}

// getLock runs the statement that waits, and reports whether the session got the lock.
func (e *entry) getLock(c *conn) (got bool, err error) {
	sent := c.owes(e.d.opts.Slice + e.d.opts.Timeout)
	got, err = e.readWait(c)
	return got, c.answered(sent, err)
}

func (e *entry) readWait(c *conn) (got bool, err error) {
	rows, err := queryAll(c.my.QueryContext(background, e.d.waitText(e), nil))
	if err != nil || len(rows) != 1 {
		return false, err
	}
	e.d.hint(e.id, rows[0].uint(0) != 0)
	return rows[0].uint(1) == 1, nil
}

// mint writes the token of a lock that was got by waiting. The answer to the wait says nothing about when the lock was
// given: it may have come long ago to a client that stood still, and the server may have ended the session since. This
// statement is a sign of life, and finds out.
func (e *entry) mint(c *conn) verdict {
	value, ok, err := e.take(c, stmtMint)
	switch {
	case c.broken != nil:
		return settled
	case err == nil && ok:
		e.granted(c, value)
		return settled
	case numberOf(err) == errNull:
		c.broken = errSwapped
		return settled
	case e.isStopped():
		return e.leaveLock(c, stopped)
	}
	if e.leaveLock(c, again) == again {
		e.d.toPool(c)
		e.fail(err)
	}
	return settled
}

// lookAfter is how long a wait goes on before it is looked who is in the way, which most waits for a lock that is held
// for a moment are spared.
const lookAfter = 10 * time.Millisecond
