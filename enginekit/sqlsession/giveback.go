// Giving a lock back until the server has certainly taken it. release.go begins it; died in release.go takes over when
// the connection ends.

package sqlsession

import "time"

// A session that was asked to give a lock back and has not said that it did may have it, and nobody would know. To end
// the session settles that, and ends all else that is held on it. So a session that answers, and merely refuses, is
// asked again. Meanwhile it gets no further locks, so that it can end with its last hold, or after a timeout; see
// enginekit.Refusals. It gets none either when it has taken all back: others have been opened for them.

// The pauses between two attempts after a refusal. They double. When they are at their most, the caller is told.
const (
	refusedFirst = 10 * time.Millisecond
	refusedMost  = time.Second
)

// giveBack releases e on c, in c's goroutine.
func (e *Entry) giveBack(c *Conn) {
	if err := c.session.Unlock(e); c.broken != nil {
		return // died goes on with it
	} else if err != nil {
		e.askBack(c, err, refusedFirst)
		return
	}
	e.gaveBack(c)
}

// gaveBack records that the server has the lock back. A connection of the pool has nothing else to do then, and one
// that gets no further locks ends with its last hold.
func (e *Entry) gaveBack(c *Conn) {
	d := e.d
	d.mu.Lock()
	d.drop(e)
	c.refused.Settled(e)
	ends := c.leaving && !c.isNeeded()
	d.mu.Unlock()
	if ends {
		c.end()
	} else if c.waits {
		d.toPool(c)
	}
}

// askBack goes on after the server has refused to take e back, in c's goroutine: it asks again after the pause. A
// connection that is spent is ended instead.
func (e *Entry) askBack(c *Conn, err error, pause time.Duration) {
	d := e.d
	d.mu.Lock()
	c.leaving = true
	d.retire(c)
	c.refused.Refused(e, err)
	spent := c.refused.Spent(d.config.Timeout, c.isNeeded())
	if pause >= refusedMost {
		e.deny(err)
	}
	d.mu.Unlock()
	if spent {
		c.Fail(err) // died goes on with it, and tells those who hold something on it
		return
	}
	d.config.Warn("the server refuses to take a lock back, and is asked again", e.Request.Name,
		d.dialect.Advise(err))
	again := func(c *Conn) {
		if err := c.session.Leave(e); c.broken != nil {
			return // died goes on with it
		} else if err != nil {
			e.askBack(c, err, min(2*pause, refusedMost))
			return
		}
		e.gaveBack(c)
	}
	// In a timer, so that the connection serves others during the pause. If it has ended by then, died has taken e
	// over.
	time.AfterFunc(pause, func() { c.Submit(Job{Run: again, Dead: func(error) {}}) })
}

// isNeeded reports whether something is held on c, or may have been granted there by now. The caller holds Core.mu.
func (c *Conn) isNeeded() bool {
	for e := range c.holds {
		if e.phase == held || e.phase == asking {
			return true
		}
	}
	return false
}

// deny tells a Release that waits that the server refuses, and each later one. The caller holds Core.mu.
func (e *Entry) deny(err error) {
	if e.denied == nil && e.denial != nil {
		close(e.denial)
	}
	e.denied = err
}

// doubts handles a try after which c may have the lock although the caller gets an error, in c's goroutine. Until that
// is settled, e is among the owners, so that nothing else asks for the lock on c.
func (e *Entry) doubts(c *Conn, err error) {
	d := e.d
	d.mu.Lock()
	e.phase = doubt
	d.own(e)
	next := d.asked(e)
	e.settle(d.Unavailable("acquire", e.Request.Name, err)) // unless a cancel has done it, with its own reason
	d.mu.Unlock()
	runAll(next)
	e.askBack(c, err, refusedFirst)
}
