package sqlsession

import "github.com/interlock-go/interlock/driver"

// CheckBreaks triggers an early call of Dialect.ReadBreaks. An engine calls it after it has written down a break: the
// holder may be a connection of this core. It does not block.
func (d *Core) CheckBreaks() {
	select {
	case d.knock <- struct{}{}:
	default: // it will be looked
	}
}

// readBreaks has it asked what operators want, unless there is nothing that they could break.
func (d *Core) readBreaks() {
	var holding []*Conn
	d.mu.Lock()
	for c := range d.all {
		if c.holdsAny() {
			holding = append(holding, c)
		}
	}
	d.mu.Unlock()
	if len(holding) > 0 {
		d.dialect.ReadBreaks(holding)
	}
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

// Break ends the hold with that token, its first, on behalf of an operator. The holder is told before the lock is given
// back, so that nobody gets in before. It does nothing if there is no such hold, and does not wait for the server.
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
	if e == nil { // it has been released, or the row is an old one
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
	c.Submit(Job{Run: e.giveBack, Dead: func(error) {}}) // if it has ended, the server has given it back
}
