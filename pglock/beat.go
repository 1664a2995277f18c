package pglock

import (
	"maps"
	"slices"
	"time"
)

const (
	// beatLeast and beatMost bound the pause between two looks at the connections.
	beatLeast = 50 * time.Millisecond
	beatMost  = time.Second

	// breakPause is how long an operator's break may go unseen if its notification was not heard.
	breakPause = 10 * time.Second
)

// beat looks after the connections until the driver is closed: it sends signs of life in time, ends connections that do
// not answer, asks what operators have broken, and has old rows removed.
func (d *Driver) beat() {
	pause := min(max(d.opts.Timeout/8, beatLeast), beatMost)
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			d.look(d.clock())
		case <-d.knock:
			d.askForBreaks()
		case <-d.base.Done():
			return
		}
	}
}

// look is one round of beat.
func (d *Driver) look(now time.Duration) {
	var ping, end []*conn
	timeout := d.opts.Timeout
	d.mu.Lock()
	for c := range d.all {
		switch {
		case c.isLate(now):
			end = append(end, c)
		case c.isStale(now):
			ping = append(ping, c)
		}
	}
	var next []func()
	for _, c := range d.shared {
		if c.isSuspect(now) {
			next = append(next, d.passBy(c)...)
		}
	}
	maps.DeleteFunc(d.hot, func(_ int64, until time.Duration) bool { return until < now })
	for _, c := range d.pool.idle { // those that a crowd has left
		if now-c.freed > max(timeout, time.Minute) {
			c.end()
		}
	}
	d.pool.idle = slices.DeleteFunc(d.pool.idle, func(c *conn) bool { return !c.goesOn() })
	breaks := len(d.entries) > 0 && now-d.looked >= min(breakPause, timeout/3)
	if breaks {
		d.looked = now
	}
	prune := now-d.pruned >= prunePause
	if prune {
		d.pruned = now
	}
	d.mu.Unlock()
	runAll(next)
	for _, c := range end {
		c.kill()
	}
	for _, c := range ping {
		c.submit(job{run: (*conn).ping, dead: func(error) {}}) // if it has ended, died has told everybody
	}
	if breaks {
		d.askForBreaks()
	}
	if prune {
		d.onShared(job{run: d.prune, dead: func(error) {}}) // another time
	}
}

// isLate reports that the server owes an answer for too long: it may have ended the session, whatever the network says.
func (c *conn) isLate(now time.Duration) bool {
	since := time.Duration(c.busy.Load())
	return since != 0 && now-since > time.Duration(c.allowed.Load())
}

// isStale reports that a sign of life is due. A connection with something to do gives one by itself.
func (c *conn) isStale(now time.Duration) bool {
	return now-c.lastSign() >= c.d.opts.Timeout/3 && c.load() == 0
}
