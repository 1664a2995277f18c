// The heartbeat: one goroutine that looks after all connections of a core.

package sqlsession

import (
	"maps"
	"slices"
	"time"
)

const (
	// heartbeatLeast and heartbeatMost bound the pause between two looks at the connections.
	heartbeatLeast = 50 * time.Millisecond
	heartbeatMost  = time.Second

	// prunePause is the longest pause between two looks for rows that are not needed any more.
	prunePause = 10 * time.Minute

	// pruneGrants is how many grants trigger such a look too, because each may have made a row. A look takes in a
	// thousand rows, so at most a quarter of the rows of a table are old ones. Clients that live for a few grants only
	// begin to count at random, so that together they look as often as one that goes on.
	pruneGrants = 256

	// pruneCooldown is the shortest pause: statements of locks must not wait for long behind looks at rows.
	pruneCooldown = 10 * time.Second
)

// heartbeat looks after the connections until the core is closed. It sends signs of life in time, ends connections that
// do not answer, asks what operators have broken, and has old rows removed. It never waits for the server itself: it
// submits jobs.
func (d *Core) heartbeat() {
	pause := min(max(d.config.Timeout/8, heartbeatLeast), heartbeatMost)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.look(d.Clock())
		// A break was announced, so it is read at once and not at the next tick.
		case <-d.knock:
			d.readBreaks()
		case <-d.base.Done():
			return
		}
	}
}

// look is one round of heartbeat.
func (d *Core) look(now time.Duration) {
	r := d.plan(now)
	runAll(r.next)
	for _, c := range r.end {
		c.Kill()
	}
	for _, c := range r.ping {
		c.submitPing()
	}
	if r.breaks {
		d.readBreaks()
	}
	if r.prune {
		d.prune()
	}
}

// round is what one look has found to do, without the mutex.
type round struct {
	end, ping     []*Conn
	next          []func() // for requests that wait behind connections that may be lost
	breaks, prune bool
}

// plan decides what must be done now.
func (d *Core) plan(now time.Duration) (r round) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.all {
		switch {
		// A connection that is late is ended and not asked: an answer would come too late for its holds.
		case c.isLate(now):
			r.end = append(r.end, c)
		case c.isStale(now):
			r.ping = append(r.ping, c)
		}
	}
	for _, c := range d.shared {
		// The server has owed an answer for two seconds. Jobs that were not begun go to other connections.
		if c.isSuspect(now) {
			r.next = append(r.next, d.passBy(c)...)
		}
	}
	maps.DeleteFunc(d.hints, func(_ LockID, until time.Duration) bool { return until < now })
	d.endIdle(now)
	r.breaks, r.prune = d.toReadBreaks(now), d.toPrune(prunePause)
	return r
}

// endIdle ends connections of the pool that have been idle for long: those that a crowd has left. The caller holds
// Core.mu.
func (d *Core) endIdle(now time.Duration) {
	for _, c := range d.pool.idle {
		if now-c.freed > max(d.config.Timeout, time.Minute) {
			c.end()
		}
	}
	d.pool.idle = slices.DeleteFunc(d.pool.idle, func(c *Conn) bool { return !c.isOpen() })
}

// toReadBreaks reports whether it is time to ask what operators have broken, and if so counts that as asked. The caller
// holds Core.mu.
func (d *Core) toReadBreaks(now time.Duration) bool {
	due := len(d.entries) > 0 && now-d.looked >= min(d.config.BreakPause, d.config.Timeout/3)
	if due {
		d.looked = now
	}
	return due
}

// prune has old rows removed, over a shared connection. If that ends before, the next look does it.
func (d *Core) prune() {
	d.OnShared(Job{Run: func(c *Conn) { c.session.Prune() }, Dead: func(error) {}}) // another time
}

// toPrune reports whether the last look for rows was at least pause ago, and if so counts another one. The caller holds
// Core.mu.
func (d *Core) toPrune(pause time.Duration) bool {
	now := d.Clock()
	if d.closed || now-d.pruned < pause {
		return false
	}
	d.pruned, d.grants = now, 0
	return true
}

// countGrant counts a grant, and reports whether rows must be looked at now because of it. The caller holds Core.mu.
func (d *Core) countGrant() bool {
	d.grants++
	return d.grants >= pruneGrants && d.toPrune(pruneCooldown)
}

// isLate reports whether the server has owed an answer for too long: it may have ended the session, whatever the
// network says.
func (c *Conn) isLate(now time.Duration) bool {
	since := time.Duration(c.busy.Load())
	return since != 0 && now-since > time.Duration(c.allowed.Load())
}

// isStale reports whether a ping is due. A connection with something to do is not spared it; see below. One that
// waits in the server holds nothing, and would give it too late.
func (c *Conn) isStale(now time.Duration) bool {
	return now-time.Duration(c.pinged.Load()) >= c.d.config.Signs && !c.pinging.Load() &&
		(!c.waits || c.load() == 0)
}

// submitPing has a ping sent when c has done what it has to do before. One at a time is enough.
func (c *Conn) submitPing() {
	c.pinging.Store(true)
	c.Submit(Job{
		Run:  func(c *Conn) { c.session.Ping(); c.pinging.Store(false) },
		Dead: func(error) {}, // died has told everybody
	})
}

// Signs of life: when statements were sent and answered. Sessions of engines call these around each statement.
//
// Not every answer is a sign of life. Between here and the server there may be a proxy that answers by itself, with an
// error when its own connection has broken, or that asks a replica where a statement only reads, or another session. So
// trust counts from a grant, which only the session that has the lock can give, and from Session.Ping, which finds out
// that the same session answers. Pings are sent however busy a connection is.

// Sent records that a statement is about to be sent, for which the server may take as long as allowed: without an
// answer by then the connection is closed. It returns the instant of [Core.Clock], which Answered wants. Only the
// goroutine that runs the statements of c may call it.
func (c *Conn) Sent(allowed time.Duration) (sent time.Duration) {
	sent = c.d.Clock()
	c.sent = sent
	// allowed first: the heartbeat reads it only while busy is set.
	c.allowed.Store(int64(allowed))
	c.busy.Store(int64(sent))
	return sent
}

// Answered records the end of a statement, and returns err. broken says that err is the end of the session, or that
// nobody knows what the server has done: then the connection ends.
func (c *Conn) Answered(err error, broken bool) error {
	c.busy.Store(0)
	if broken {
		c.Fail(err)
	}
	return err
}

// Confirm records a sign of life: this session, on the server that grants, has answered what was sent at that instant
// of [Core.Clock]. Holds are trusted from there. An engine calls it for the set-up and in Session.Ping.
func (c *Conn) Confirm(sent time.Duration) {
	c.confirmed.Store(int64(sent))
	c.pinged.Store(int64(sent))
}

// confirmGrant records that the last statement has brought a grant. It leaves the next ping due when it was. Only the
// goroutine that runs the statements of c may call it.
func (c *Conn) confirmGrant() { c.confirmed.Store(int64(max(c.sent, c.lastSign()))) }

// Fail ends the connection, which must not be used any more because of err; the first reason counts. Its holds are
// lost, and the server is told to end the session. Only the goroutine that runs its statements may call it, and it
// takes effect after the present one.
func (c *Conn) Fail(err error) {
	switch {
	case c.broken != nil:
	case err == nil:
		c.broken = ErrLost
	default:
		c.broken = err
	}
}

// Err returns why the connection is not used any more, or nil. Only the goroutine that runs its statements may call it.
func (c *Conn) Err() error { return c.broken }
