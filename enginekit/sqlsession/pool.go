// The pool of connections that wait. wait.go takes from it; giveback.go gives back.

package sqlsession

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
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
