package pglock

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

// pool is of the connections that wait. One that got the lock keeps it until it is released. Guarded by Driver.mu, but for
// the channels.
type pool struct {
	idle  []*conn       // the one used last at the end
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

// fromPool returns a connection that holds nothing, or nil if there is no room for one.
func (e *entry) fromPool() *conn {
	d := e.d
	d.mu.Lock()
	p := &d.pool
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.goesOn() {
			d.mu.Unlock()
			return c
		}
	}
	if p.count >= d.opts.Waits || e.ending || p.rests > d.clock() {
		d.mu.Unlock()
		return nil
	}
	p.count++
	d.mu.Unlock()
	c := e.dial()
	if c != nil {
		return c
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.count--
	p.signal()
	return nil
}

// dial opens a connection for waits when it is its turn, unless e does not want one any more by then.
func (e *entry) dial() *conn {
	d := e.d
	select {
	case d.pool.dials <- struct{}{}:
		defer func() { <-d.pool.dials }()
	case <-e.stop:
		return nil
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
	c, err := d.dial(ctx, true)
	if err == nil {
		return c
	}
	if !e.isStopped() {
		d.opts.Logger.Warn("postgres: a wait has no connection of its own and asks again and again instead", "lock", e.r.Name, "err", advise(err))
		d.mu.Lock()
		d.pool.rests = d.clock() + dialRest
		d.mu.Unlock()
	}
	return nil
}

// toPool takes back a connection that holds nothing.
func (d *Driver) toPool(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.tainted || d.closed {
		c.end() // died takes it out
		return
	}
	c.freed = d.clock()
	d.pool.idle = append(d.pool.idle, c)
	d.pool.signal()
}

// leave takes a connection that has ended out of the lists. The caller holds Driver.mu.
func (d *Driver) leave(c *conn) {
	delete(d.all, c)
	same := func(other *conn) bool { return other == c }
	if !c.waits {
		d.shared = slices.DeleteFunc(d.shared, same)
		return
	}
	d.pool.idle = slices.DeleteFunc(d.pool.idle, same)
	d.pool.count--
	d.pool.signal()
}
