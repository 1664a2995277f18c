package sqlsession

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// mostDials bounds how many connections for waits are opened at once: a crowd that dials all at once makes the
	// server so slow that nobody gets through in time.
	mostDials = 4

	// dialCooldown is how long no connection for waits is opened after one could not be. The waits poll meanwhile, and
	// their tries find out whether the server is there at all.
	dialCooldown = time.Second

	// mostSlow bounds what a server is spared that was too slow, again and again, to open a connection: it is asked for
	// one, and polled, less and less often. Otherwise the polls and attempts of a thousand clients keep it from ever
	// getting through with any of them.
	mostSlow = 3
)

// pool is of the connections that wait. One that got the lock keeps it until it is released. Guarded by Core.mu, but
// for the channels.
type pool struct {
	idle      []*Conn       // the one used last at the end
	count     int           // all, those that are being opened too
	dialAfter time.Duration // until when none is opened
	slow      int           // how many in a row could not be opened because the server took too long, up to mostSlow
	failed    time.Duration // when the last of those had taken too long
	freed     chan struct{} // has one place; there may be room
	dials     chan struct{} // has a place for each connection that is being opened
}

// signal tells one of those who poll that there may be room.
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
	if d.poolRests() { // another could not open one while e waited for its turn
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

// fails notes that a connection could not be opened. A server that is full says so at once, and is polled as ever. One
// that took as long as a mute one has more to do than it can.
func (p *pool) fails(begun, now time.Duration) {
	if now-begun < suspicion {
		p.slow, p.dialAfter = 0, now+dialCooldown
		return
	}
	if begun < p.failed {
		return // side by side with the last that failed: that is one failure, and no second in a row
	}
	p.failed = now
	p.dialAfter = now + dialCooldown<<p.slow + rand.N(dialCooldown<<p.slow) // not all clients at once
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

// retire takes a connection that is about to end out of those that are shared. The caller holds Core.mu.
func (d *Core) retire(c *Conn) {
	d.shared = slices.DeleteFunc(d.shared, func(other *Conn) bool { return other == c })
}
