// The connections of a core: the pool of those that wait, and below those that are shared. wait.go takes from it;
// release.go gives back.

package sqlsession

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// mostDials bounds how many connections for waits are opened at once. A crowd that dials all at once makes the
	// server so slow that none gets through in time.
	mostDials = 4

	// dialCooldown is how long no connection for waits is opened after one could not be. The waits poll meanwhile, and
	// their tries find out whether the server is there at all.
	dialCooldown = time.Second

	// mostSlow bounds how much a server is spared that was too slow, again and again, to open a connection. It is asked
	// for one, and polled, less and less often. Otherwise the polls and attempts of a thousand clients could keep it
	// from ever getting through with any of them.
	mostSlow = 3
)

// pool has the connections that wait. One that got the lock keeps it until it is released. Core.mu guards it, except
// for the channels.
type pool struct {
	idle      []*Conn       // they hold nothing; the last used one is at the end
	count     int           // all of the pool, also those that wait, hold, or are being opened
	dialAfter time.Duration // until when none is opened, since Core.born
	slow      int           // how many in a row the server took too long to open, up to mostSlow
	failed    time.Duration // when the last of those had taken too long
	freed     chan struct{} // buffer of one: there may be room
	dials     chan struct{} // holds an element for each connection that is being opened
}

// signal tells one of those that poll that there may be room.
func (p *pool) signal() {
	select {
	case p.freed <- struct{}{}:
	default: // it is told already
	}
}

// fromPool returns a connection that holds nothing, or nil if there is no room for one. An error is one that time does
// not mend.
func (e *Entry) fromPool() (*Conn, error) {
	d := e.d
	d.mu.Lock()
	p := &d.pool
	for len(p.idle) > 0 {
		// The last used one first: a connection that a crowd has left can then end.
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.isOpen() {
			d.mu.Unlock()
			return c, nil
		}
	}
	if p.count >= d.config.Waits || e.ending || p.dialAfter > d.Clock() {
		d.mu.Unlock()
		return nil, nil //nolint:nilnil // the caller polls instead
	}
	// Counted before it is opened, without the mutex, so that Waits is kept.
	p.count++
	d.mu.Unlock()
	c, err := e.dial()
	if c != nil {
		return c, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.count--
	p.signal()
	return nil, err
}

// dial opens a connection for waits when it is its turn, unless e does not want one any more by then.
func (e *Entry) dial() (*Conn, error) {
	d := e.d
	select {
	case d.pool.dials <- struct{}{}:
		defer func() { <-d.pool.dials }()
	case <-e.stop:
		return nil, nil //nolint:nilnil // the caller finds out
	}
	// Another could not open one while e waited for its turn.
	if d.poolRests() {
		return nil, nil //nolint:nilnil // the caller polls instead
	}
	ctx, cancel := context.WithCancel(d.base)
	defer cancel()
	go func() { // ends with the attempt
		select {
		case <-e.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	begun := d.Clock()
	c, err := d.dialect.Dial(ctx, true)
	switch {
	case err == nil:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pool.slow = 0
		return c, nil
	case e.Stopped():
		return nil, nil //nolint:nilnil // the caller finds out
	case d.dialect.IsForGood(err):
		return nil, err
	}
	d.config.Warn("a wait has no connection of its own and asks again and again instead", e.Request.Name,
		d.dialect.Advise(err))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool.fails(begun, d.Clock())
	return nil, nil //nolint:nilnil // the caller polls instead
}

// poolRests reports whether no connection is opened for now.
func (d *Core) poolRests() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pool.dialAfter > d.Clock()
}

// fails records that a connection could not be opened. A server that is full says so at once, and is polled as ever.
// One that took as long as a mute server has more to do than it can. The caller holds Core.mu.
func (p *pool) fails(begun, now time.Duration) {
	if now-begun < suspicion {
		p.slow, p.dialAfter = 0, now+dialCooldown
		return
	}
	if begun < p.failed {
		// Side by side with the last that failed: that is one failure, and not the second in a row.
		return
	}
	p.failed = now
	// At random, so that not all clients come back at once.
	p.dialAfter = now + dialCooldown<<p.slow + rand.N(dialCooldown<<p.slow)
	p.slow = min(p.slow+1, mostSlow)
}

// toPool takes back a connection that holds nothing.
func (d *Core) toPool(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.tainted || d.closed {
		c.end() // died takes it out
		return
	}
	c.freed = d.Clock()
	d.pool.idle = append(d.pool.idle, c)
	d.pool.signal()
}

// leave takes a connection that has ended out of the lists. The caller holds Core.mu.
func (d *Core) leave(c *Conn) {
	delete(d.all, c)
	if !c.waits {
		d.retire(c)
		return
	}
	d.pool.idle = slices.DeleteFunc(d.pool.idle, func(other *Conn) bool { return other == c })
	d.pool.count--
	d.pool.signal()
}

// retire takes a connection that is about to end out of the shared ones. The caller holds Core.mu.
func (d *Core) retire(c *Conn) {
	d.shared = slices.DeleteFunc(d.shared, func(other *Conn) bool { return other == c })
}

// The shared connections: which one a job gets, and when another is opened. ask.go, operator.go and the heartbeat use
// them.

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
