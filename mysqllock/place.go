package mysqllock

import "slices"

// place is what this driver has to do with one lock. GET_LOCK lets a session in that has the lock already, so the server
// is not asked over a shared connection while the driver itself has the lock, and never by two requests at once.
type place struct {
	asker  *entry   // tries for it over a shared connection
	line   []*entry // go on when the asker has its answer
	owners []*entry // hold it or are giving it back; more than one only when the server was quicker than its answer
}

// place returns that of a lock. The caller holds Driver.mu.
func (d *Driver) place(id lockID) *place {
	p := d.places[id]
	if p == nil {
		p = &place{}
		d.places[id] = p
	}
	return p
}

// tidy forgets a place of which nothing is left. The caller holds Driver.mu.
func (d *Driver) tidy(id lockID) {
	if p := d.places[id]; p != nil && p.asker == nil && len(p.line) == 0 && len(p.owners) == 0 {
		delete(d.places, id)
	}
}

// route decides what is next for a request that is to be asked for, and returns what to do without the mutex. The caller
// holds Driver.mu.
func (d *Driver) route(e *entry) (next func()) {
	p := d.place(e.id)
	switch {
	case len(p.owners) > 0 && e.r.Try:
		e.settle(p.owners[0].heldError())
		d.drop(e)
		return nil
	case len(p.owners) > 0:
		return d.toWait(e)
	case d.contended[e.id] && !e.r.Try && len(p.line) == 0:
		d.tidy(e.id)
		return d.toWait(e)
	case p.asker != nil:
		p.line = append(p.line, e)
		return nil
	}
	p.asker = e
	return e.startAsking
}

// asked ends the turn of the asker of a lock, and returns what to do for those behind it. The caller holds Driver.mu.
func (d *Driver) asked(e *entry) (next []func()) {
	p := d.place(e.id)
	if p.asker != e {
		return nil
	}
	line := p.line
	p.asker, p.line = nil, nil
	for _, other := range line {
		if f := d.route(other); f != nil {
			next = append(next, f)
		}
	}
	d.tidy(e.id)
	return next
}

// own notes that e has the lock. The caller holds Driver.mu.
func (d *Driver) own(e *entry) {
	p := d.place(e.id)
	p.owners = append(p.owners, e)
}

// drop takes e out of everything: nothing is left of it in the server. The caller holds Driver.mu.
func (d *Driver) drop(e *entry) {
	if e.phase == over {
		return
	}
	e.phase = over
	if d.entries[e.r.ID] == e {
		delete(d.entries, e.r.ID)
	}
	if e.c != nil {
		delete(e.c.holds, e)
	}
	p := d.place(e.id)
	p.owners = slices.DeleteFunc(p.owners, func(other *entry) bool { return other == e })
	p.line = slices.DeleteFunc(p.line, func(other *entry) bool { return other == e })
	d.tidy(e.id)
	if e.epitaph.is() {
		d.gone.bury(e.r.ID, e.epitaph)
	}
	e.settle(gone(e.r.Key))
	close(e.over)
}

// runAll does what was decided under the mutex.
func runAll(next []func()) {
	for _, f := range next {
		f()
	}
}

// mostHints bounds what is remembered of locks.
const mostHints = 1024

// hint notes whether a lock was held when it was last waited for. If it was, the next request for it begins with the wait
// and is spared a try that would most likely fail.
func (d *Driver) hint(id lockID, wasHeld bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !wasHeld {
		delete(d.contended, id)
		return
	}
	if len(d.contended) >= mostHints {
		for other := range d.contended {
			delete(d.contended, other) // any of them
			break
		}
	}
	d.contended[id] = true
}
