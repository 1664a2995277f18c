package sqllock

import (
	"context"
	"slices"
	"time"
)

const (
	// mostDials bounds how many connections for waits are opened at once: a crowd that dials all at once makes the server so
	// slow that nobody gets through in time.
	mostDials = 4

	// dialRest is how long no connection for waits is opened after one could not be. The waits poll meanwhile, and their tries
	// find out whether the server is there at all.
	dialRest = time.Second
)

// pool is of the connections that wait. One that got the lock keeps it until it is released. Guarded by Core.mu, but for
// the channels.
type pool struct {
	idle  []*Conn       // the one used last at the end
	count int           // all, those that are being opened too
	rests time.Duration // until when none is opened
	freed chan struct{} // has one place; there may be room
	dials chan struct{} // has a place for each connection that is being opened
}

// signal tells one of those who poll that there may be room.
func (p *pool) signal() {
	select {
	case p.freed <- struct{}{}:
	default: // it is told already
	}
}

// fromPool returns a connection that holds nothing, or nil if there is no room for one. An error is one that time does not mend.
func (e *Entry) fromPool() (*Conn, error) {
	d := e.d
	d.mu.Lock()
	p := &d.pool
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.GoesOn() {
			d.mu.Unlock()
			return c, nil
		}
	}
	if p.count >= d.config.Waits || e.ending || p.rests > d.Clock() {
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
	ctx, cancel := context.WithCancel(d.base)
	defer cancel()
	go func() { // ends with the attempt
		select {
		case <-e.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	c, err := d.dialect.Dial(ctx, true)
	switch {
	case err == nil:
		return c, nil
	case e.Stopped():
		return nil, nil //nolint:nilnil // the caller finds out
	case d.dialect.IsForGood(err):
		return nil, err
	}
	d.config.Warn("a wait has no connection of its own and asks again and again instead", e.Request.Name, d.dialect.Advise(err))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pool.rests = d.Clock() + dialRest
	return nil, nil //nolint:nilnil // the caller polls instead
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
	same := func(other *Conn) bool { return other == c }
	if !c.waits {
		d.shared = slices.DeleteFunc(d.shared, same)
		return
	}
	d.pool.idle = slices.DeleteFunc(d.pool.idle, same)
	d.pool.count--
	d.pool.signal()
}
