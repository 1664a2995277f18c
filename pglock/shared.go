package pglock

import (
	"fmt"
	"time"
)

// onShared has j run on one of the shared connections, and opens another if all have something to do. Driver.mu must not
// be held.
func (d *Driver) onShared(j job) {
	j.any = true
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		j.dead(errClosed)
		return
	}
	best, least, sound := d.leastLoaded()
	if (best == nil || least > 0) && !d.dialing && sound < d.opts.Shared {
		d.dialing = true
		d.work.Go(d.growShared) // ends with the attempt, which is bounded
	}
	if best == nil {
		d.wanting = append(d.wanting, j)
	}
	d.mu.Unlock()
	if best != nil {
		best.submit(j)
	}
}

// suspicion is after how long without an answer a shared connection is not asked further things, and may have a successor:
// its packets may be lost, which only the timeout ends, and others get through.
const suspicion = 2 * time.Second

func (c *conn) isSuspect(now time.Duration) bool {
	since := time.Duration(c.busy.Load())
	return since != 0 && now-since > suspicion
}

// passBy has others do what a suspect connection was to do and has not begun, and ends the turn of those whose answer it owes:
// what they hold back may be asked for in another session. It returns what is to be done without the mutex. The caller
// holds Driver.mu.
func (d *Driver) passBy(c *conn) (next []func()) {
	for _, j := range c.strays() {
		next = append(next, func() { d.onShared(j) })
	}
	for e := range c.holds {
		if e.phase == asking {
			next = append(next, d.asked(e)...)
		}
	}
	return next
}

// leastLoaded returns the shared connection with the least to do and how much that is, or nil, and how many are sound. The
// caller holds Driver.mu.
func (d *Driver) leastLoaded() (best *conn, least, sound int) {
	now := d.clock()
	for _, c := range d.shared {
		if c.isSuspect(now) {
			continue
		}
		sound++
		if n := c.load(); best == nil || n < least {
			best, least = c, n
		}
	}
	return best, least, sound
}

// growShared opens a shared connection.
func (d *Driver) growShared() {
	c, err := d.dial(d.base, false)
	d.mu.Lock()
	d.dialing = false
	if err == nil {
		d.shared = append(d.shared, c)
	}
	wanting := d.wanting
	d.wanting = nil
	d.mu.Unlock()
	for _, j := range wanting {
		if err == nil {
			c.submit(j)
		} else {
			j.dead(fmt.Errorf("opening a connection: %w", err))
		}
	}
}
