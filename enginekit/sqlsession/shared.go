// The shared connections: which one a job gets, and when another is opened. ask.go, query.go and the heartbeat use
// them.

package sqlsession

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// OnShared runs j on the shared connection that has the least to do. It opens another connection if all are busy and
// there is room. It does not wait for j. After Close it calls j.Dead with driver.ErrClosed, and if no connection can be
// opened with the reason; both may happen before OnShared returns. So the caller must not hold a mutex that j.Dead
// takes.
func (d *Core) OnShared(j Job) {
	j.any = true
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		j.Dead(driver.ErrClosed)
		return
	}
	best, least, sound := d.leastLoaded(nil)
	d.grow(best == nil || least > 0, sound)
	if best == nil {
		j.inline = nil // it is not for the goroutine that opens the connection
		d.wanting = append(d.wanting, j)
	}
	d.mu.Unlock()
	if best != nil {
		best.Submit(j)
	}
}

// onSharedBeside is OnShared for the asker of a lock that others may share with it: it chooses a connection that has no
// part in it.
func (d *Core) onSharedBeside(e *Entry, j Job) {
	d.mu.Lock()
	p := d.lockState(e.lock)
	if len(p.owners) == 0 || d.ended {
		d.tidy(e.lock)
		d.mu.Unlock()
		d.OnShared(j)
		return
	}
	best, least, sound := d.leastLoaded(p)
	room := d.grow(best == nil || least > 0, sound)
	if best == nil && room {
		// A connection that could not be opened is no answer yet: one of the pool may ask.
		d.wanting = append(d.wanting, Job{Run: j.Run, Dead: func(error) { e.askElsewhere(j) }})
	}
	d.mu.Unlock()
	switch {
	case best != nil:
		best.Submit(j)
	case !room:
		e.askElsewhere(j)
	}
}

// askElsewhere is for a lock in which each shared connection has a part: a connection of the pool can ask.
func (e *Entry) askElsewhere(j Job) {
	d := e.d
	d.mu.Lock()
	first := e.phase == asking
	d.mu.Unlock()
	switch {
	case !first:
		j.Dead(ErrLost) // it polls on
	case !e.Request.Try:
		e.contend(false)
	case !d.spawn(func() { e.tryFromPool(j) }): // ends with the try
		j.Dead(driver.ErrClosed)
	}
}

// tryFromPool tries over a connection of the pool, for a try that no shared connection can make.
func (e *Entry) tryFromPool(j Job) {
	c, err := e.fromPool()
	switch {
	case c != nil:
		c.Submit(Job{Run: func(c *Conn) {
			j.Run(c)
			// Without a grant the connection is free for others. With one it belongs to the hold until the release.
			if c.broken == nil && !e.wasGranted() {
				e.d.toPool(c)
			}
		}, Dead: j.Dead})
	case err != nil:
		e.fail(err)
	default:
		e.fail(errNoSession)
	}
}

// wasGranted reports whether e has the lock, or had it.
func (e *Entry) wasGranted() bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.token != 0
}

// grow opens another shared connection if one is wanted. It reports whether one is being opened. The caller holds
// Core.mu.
func (d *Core) grow(wanted bool, sound int) (room bool) {
	if wanted && !d.dialing && sound < d.config.Shared {
		d.dialing = true
		d.work.Go(d.growShared) // ends with the attempt, which is bounded
	}
	return d.dialing
}

// suspicion is the time without an answer after which a shared connection gets no further jobs, and may have a
// successor. Its packets may be lost, which only the timeout ends, while others get through.
const suspicion = 2 * time.Second

// isSuspect reports whether the server has owed c an answer for that long.
func (c *Conn) isSuspect(now time.Duration) bool {
	since := time.Duration(c.busy.Load())
	return since != 0 && now-since > suspicion
}

// passBy gives the jobs that a suspect connection has not begun to others, and ends the turn of requests whose answer
// it owes: what they hold back may be asked for in another session. It returns what must be done without the mutex. The
// caller holds Core.mu.
func (d *Core) passBy(c *Conn) (next []func()) {
	for _, j := range c.strays() {
		next = append(next, func() { d.OnShared(j) })
	}
	for e := range c.holds {
		if e.phase == asking {
			next = append(next, d.asked(e)...)
		}
	}
	return next
}

// leastLoaded returns the shared connection with the least to do among those that have no part in p, and how much that
// is. It returns nil if there is none. sound is how many shared connections answer. The caller holds Core.mu.
func (d *Core) leastLoaded(p *lockState) (best *Conn, least, sound int) {
	now := d.Clock()
	for _, c := range d.shared {
		if c.isSuspect(now) || !c.isOpen() { // one that must end is in the list for another moment
			continue
		}
		sound++
		if p != nil && p.isOn(c) {
			continue
		}
		if n := c.load(); best == nil || n < least {
			best, least = c, n
		}
	}
	return best, least, sound
}

// growShared opens a shared connection for the jobs that want one. If that fails, the error is the answer to jobs that
// came before the attempt began, and to no others: what stood in its way may have gone before those came.
func (d *Core) growShared() {
	for {
		asked := d.takeWanting()
		c, err := d.dialShared()
		d.mu.Lock()
		if err == nil {
			d.shared = append(d.shared, c)
			// With a connection, jobs that came during the attempt are served too. Without one they start another
			// attempt.
			asked, d.wanting = append(asked, d.wanting...), nil
		}
		d.dialing = err != nil && len(d.wanting) > 0
		again := d.dialing
		d.mu.Unlock()
		for _, j := range asked {
			if err == nil {
				c.Submit(j)
			} else {
				j.Dead(fmt.Errorf("opening a connection: %w", err))
			}
		}
		if !again {
			return
		}
	}
}

// takeWanting takes the jobs that wait for a connection.
func (d *Core) takeWanting() []Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	wanting := d.wanting
	d.wanting = nil
	return wanting
}

// dialShared opens a connection. One that is cut off while it is being opened is opened again, once: nothing was asked
// of it, and those that wait for it would otherwise be told that the outcome is unknown. A server that lets us wait is
// not asked twice.
func (d *Core) dialShared() (*Conn, error) {
	begun := d.Clock()
	c, err := d.dialect.Dial(d.base, false)
	if err != nil && d.base.Err() == nil && !d.dialect.IsForGood(err) && d.Clock()-begun < suspicion {
		c, err = d.dialect.Dial(d.base, false)
	}
	if err != nil && d.base.Err() != nil {
		return nil, driver.ErrClosed
	}
	return c, err
}
