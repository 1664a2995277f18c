package pglock

import "slices"

// place is what this driver has to do with one number. A session that has an advisory lock gets it again, so the server is
// not asked over a shared connection while the driver itself has the lock, and never by two requests at once.
type place struct {
	asker  *entry   // tries for it over a shared connection
	line   []*entry // go on when the asker has its answer
	owners []*entry // hold it or are giving it back; more than one only when the server was quicker than its answer
}

// place returns that of a lock. The caller holds Driver.mu.
func (d *Driver) place(num int64) *place {
	p := d.places[num]
	if p == nil {
		p = &place{}
		d.places[num] = p
	}
	return p
}

// tidy forgets a place of which nothing is left. The caller holds Driver.mu.
func (d *Driver) tidy(num int64) {
	if p := d.places[num]; p != nil && p.asker == nil && len(p.line) == 0 && len(p.owners) == 0 {
		delete(d.places, num)
	}
}

// route decides what is next for a request that is to be asked for, and returns what to do without the mutex. The caller
// holds Driver.mu.
func (d *Driver) route(e *entry) (next func()) {
	p := d.place(e.num)
	switch {
	case len(p.owners) > 0 && p.owners[0].r.Key != e.r.Key:
		return func() { e.d.onShared(job{run: e.moveOn, dead: e.fail}) }
	case len(p.owners) > 0 && e.r.Try:
		e.settle(p.owners[0].heldError())
		d.drop(e)
		return nil
	case len(p.owners) > 0:
		return d.toWait(e)
	case p.asker != nil:
		p.line = append(p.line, e)
		return nil
	case !e.r.Try && e.probe == 0 && len(d.pool.idle) > 0 && d.hot[e.num] > d.clock():
		d.tidy(e.num)
		e.hot, e.heated = true, d.clock()
		return d.toWait(e)
	}
	p.asker = e
	return e.startAsking
}

// asked ends the turn of the asker of a lock, and returns what to do for those behind it. The caller holds Driver.mu.
func (d *Driver) asked(e *entry) (next []func()) {
	p := d.place(e.num)
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
	d.tidy(e.num)
	return next
}

// own notes that e has the lock. The caller holds Driver.mu.
func (d *Driver) own(e *entry) {
	p := d.place(e.num)
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
	p := d.place(e.num)
	p.owners = slices.DeleteFunc(p.owners, func(other *entry) bool { return other == e })
	p.line = slices.DeleteFunc(p.line, func(other *entry) bool { return other == e })
	d.tidy(e.num)
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
