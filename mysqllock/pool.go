package mysqllock

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// pool is of the connections that wait. One that got the lock keeps it until it is released. Guarded by Driver.mu.
type pool struct {
	idle  []*conn       // the one used last at the end
	count int           // all, those that are being opened too
	freed chan struct{} // has one place; there may be room
	full  time.Duration // until when the server is not asked for another one, because it has no room
}

// fullPause is how long a server that has no room for another connection is not asked for one.
const fullPause = time.Second

// signal tells one of those who poll that there may be room.
func (p *pool) signal() {
	select {
	case p.freed <- struct{}{}:
	default: // it is told already
	}
}

// fromPool returns a connection that holds nothing, or nil if there is no room for one.
func (e *entry) fromPool() (*conn, error) {
	d := e.d
	d.mu.Lock()
	p := &d.pool
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.goesOn() {
			d.mu.Unlock()
			return c, nil
		}
	}
	if p.count >= d.opts.Waits || d.clock() < p.full || e.ending {
		d.mu.Unlock()
		return nil, nil //nolint:nilnil // the caller polls instead
	}
	p.count++
	d.mu.Unlock()
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
		return c, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p.count--
	if isFull(err) {
		p.full = d.clock() + fullPause
		return nil, nil //nolint:nilnil // the caller polls instead
	}
	p.signal()
	return nil, err
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

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }
