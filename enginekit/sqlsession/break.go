// Breaks: an operator's wish, which stands in the server's tables, ends a hold of this core. heartbeat.go looks now and
// then; the engine reads the rows.

package sqlsession

import "github.com/interlock-go/interlock/driver"

// CheckBreaks triggers an early call of Dialect.ReadBreaks. An engine calls it after it has recorded a break, because
// the holder may be a connection of this core. It does not block.
func (d *Core) CheckBreaks() {
	select {
	case d.knock <- struct{}{}:
	default: // a look is due already
	}
}

// readBreaks asks what operators want, unless this core holds nothing that they could break. It asks once at a time:
// far from the server the questions would stand in line, and signs of life behind them.
func (d *Core) readBreaks() {
	if !d.reading.CompareAndSwap(false, true) {
		return
	}
	var holding []*Conn
	d.mu.Lock()
	for c := range d.all {
		if c.holdsAny() {
			holding = append(holding, c)
		}
	}
	d.mu.Unlock()
	if len(holding) == 0 {
		d.reading.Store(false)
		return
	}
	d.OnShared(Job{
		Run: func(c *Conn) {
			defer d.reading.Store(false)
			d.dialect.ReadBreaks(c, holding)
		},
		Dead: func(error) { d.reading.Store(false) }, // the next look asks
	})
}

// holdsAny reports whether a lock is held on c. The caller holds Core.mu.
func (c *Conn) holdsAny() bool {
	for e := range c.holds {
		if e.phase == held {
			return true
		}
	}
	return false
}

// Break ends the hold whose first token is token, on behalf of an operator. The holder is told before the lock is given
// back, so that nobody gets in before it knows. If there is no such hold, Break does nothing. It does not wait for the
// server.
func (d *Core) Break(lock LockID, token uint64) {
	d.mu.Lock()
	var e *Entry
	if p := d.lockStates[lock]; p != nil {
		for _, other := range p.owners {
			if other.phase == held && other.token == token {
				e = other
			}
		}
	}
	// It has been released, or the row is an old one.
	if e == nil {
		d.mu.Unlock()
		return
	}
	e.epitaph = epitaph{reason: driver.LostBroken, token: e.token}
	e.phase = releasing
	c, lost := e.c, e.Request.Lost
	d.mu.Unlock()
	if lost != nil {
		lost(driver.LostBroken, nil)
	}
	c.Submit(Job{Run: e.giveBack, Dead: func(error) {}}) // if it has ended, the server has the lock back
}
