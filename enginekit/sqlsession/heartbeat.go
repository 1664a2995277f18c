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

	// prunePause is the pause between two looks at rows that nobody needs any more.
	prunePause = 10 * time.Minute

	// pruneGrants is after how many grants there is another such look: each grant may have made a row. A look takes in
	// a thousand, so that at most a quarter of the rows of a table are old ones. Clients that live for a few grants
	// begin to count at random, so that together they look as often as one that goes on.
	pruneGrants = 256

	// pruneCooldown is the shortest pause. Nobody is to be kept waiting for long behind looks at rows.
	pruneCooldown = 10 * time.Second
)

// heartbeat looks after the connections until the driver is closed: it sends signs of life in time, ends connections
// that do not answer, asks what operators have broken, and has old rows removed.
func (d *Core) heartbeat() {
	pause := min(max(d.config.Timeout/8, heartbeatLeast), heartbeatMost)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.look(d.Clock())
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
		// if it has ended, died has told everybody
		c.Submit(Job{Run: func(c *Conn) { c.session.Ping() }, Dead: func(error) {}})
	}
	if r.breaks {
		d.readBreaks()
	}
	if r.prune {
		d.prune()
	}
}

// round is what one look has found to do.
type round struct {
	end, ping     []*Conn
	next          []func() // for those who wait for connections that may be lost
	breaks, prune bool
}

// plan says what is to be done now, without the mutex.
func (d *Core) plan(now time.Duration) (r round) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.all {
		switch {
		case c.isLate(now):
			r.end = append(r.end, c)
		case c.isStale(now):
			r.ping = append(r.ping, c)
		}
	}
	for _, c := range d.shared {
		if c.isSuspect(now) {
			r.next = append(r.next, d.passBy(c)...)
		}
	}
	maps.DeleteFunc(d.hints, func(_ LockID, until time.Duration) bool { return until < now })
	d.endIdle(now)
	r.breaks, r.prune = d.toReadBreaks(now), d.toPrune(prunePause)
	return r
}

// endIdle ends the connections that a crowd has left. The caller holds Core.mu.
func (d *Core) endIdle(now time.Duration) {
	for _, c := range d.pool.idle {
		if now-c.freed > max(d.config.Timeout, time.Minute) {
			c.end()
		}
	}
	d.pool.idle = slices.DeleteFunc(d.pool.idle, func(c *Conn) bool { return !c.isOpen() })
}

// toReadBreaks reports whether it is time to ask what operators have broken, and notes that it is asked then. The
// caller holds Core.mu.
func (d *Core) toReadBreaks(now time.Duration) bool {
	due := len(d.entries) > 0 && now-d.looked >= min(d.config.BreakPause, d.config.Timeout/3)
	if due {
		d.looked = now
	}
	return due
}

// prune has rows looked at, over a shared connection.
func (d *Core) prune() {
	d.OnShared(Job{Run: func(c *Conn) { c.session.Prune() }, Dead: func(error) {}}) // another time
}

// toPrune reports whether the last look was so long ago, and notes that there is another then. The caller holds
// Core.mu.
func (d *Core) toPrune(pause time.Duration) bool {
	now := d.Clock()
	if d.closed || now-d.pruned < pause {
		return false
	}
	d.pruned, d.grants = now, 0
	return true
}

// countGrant reports whether rows are to be looked at now, because of the grants that there have been. The caller holds
// Core.mu.
func (d *Core) countGrant() bool {
	d.grants++
	return d.grants >= pruneGrants && d.toPrune(pruneCooldown)
}

// isLate reports that the server owes an answer for too long: it may have ended the session, whatever the network says.
func (c *Conn) isLate(now time.Duration) bool {
	since := time.Duration(c.busy.Load())
	return since != 0 && now-since > time.Duration(c.allowed.Load())
}

// isStale reports that a sign of life is due. A connection with something to do gives one by itself.
func (c *Conn) isStale(now time.Duration) bool {
	return now-c.lastSign() >= c.d.config.Signs && c.load() == 0
}
