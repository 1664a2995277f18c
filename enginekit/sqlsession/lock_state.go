package sqlsession

import (
	"slices"
	"time"
)

// lockState is what this driver has to do with one lock. The server lets a session in that has the lock already,
// whatever it asks for, so it is never asked over a session that has a part in it, and never by two requests at once.
type lockState struct {
	asker *Entry   // tries for it over a shared connection
	line  []*Entry // go on when the asker has its answer
	// hold it or are giving it back; more than one if they share it, or when the server was quicker than its answer
	owners []*Entry
}

// lockState returns that of a lock. The caller holds Core.mu.
func (d *Core) lockState(lock LockID) *lockState {
	p := d.lockStates[lock]
	if p == nil {
		p = &lockState{}
		d.lockStates[lock] = p
	}
	return p
}

// tidy forgets a lock of which nothing is left. The caller holds Core.mu.
func (d *Core) tidy(lock LockID) {
	if p := d.lockStates[lock]; p != nil && p.asker == nil && len(p.line) == 0 && len(p.owners) == 0 {
		delete(d.lockStates, lock)
	}
}

// keepOut reports whether the owners are in the way of e, which is known without asking the server.
func (p *lockState) keepOut(e *Entry) bool {
	return slices.ContainsFunc(p.owners, func(owner *Entry) bool { return !owner.isShared() || !e.isShared() })
}

// isOn reports whether c has a part in the lock.
func (p *lockState) isOn(c *Conn) bool {
	return slices.ContainsFunc(p.owners, func(owner *Entry) bool { return owner.c == c })
}

// route decides what is next for a request that is to be asked for, and returns what to do without the mutex. The
// caller holds Core.mu.
func (d *Core) route(e *Entry) (next func()) {
	p := d.lockState(e.lock)
	switch {
	case len(p.owners) > 0 && p.owners[0].Request.Key != e.Request.Key:
		return e.moveOn
	case p.keepOut(e) && e.Request.Try:
		e.settle(p.owners[0].heldError())
		d.drop(e)
		return nil
	case p.keepOut(e):
		return d.toWait(e)
	case p.asker != nil:
		p.line = append(p.line, e)
		return nil
	case !e.Request.Try && e.probe == 0 && len(d.pool.idle) > 0 && d.hints[e.lock] > d.Clock():
		d.tidy(e.lock)
		e.untried, e.hinted = true, d.Clock()
		return d.toWait(e)
	}
	p.asker = e
	return e.startAsking
}

// asked ends the turn of the asker of a lock, and returns what to do for those behind it. The caller holds Core.mu.
func (d *Core) asked(e *Entry) (next []func()) {
	p := d.lockState(e.lock)
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
	d.tidy(e.lock)
	return next
}

// own notes that e has the lock. The caller holds Core.mu.
func (d *Core) own(e *Entry) {
	p := d.lockState(e.lock)
	p.owners = append(p.owners, e)
}

// disown takes e out of what is known of its lock. The caller holds Core.mu.
func (d *Core) disown(e *Entry) {
	p, same := d.lockState(e.lock), func(other *Entry) bool { return other == e }
	p.owners, p.line = slices.DeleteFunc(p.owners, same), slices.DeleteFunc(p.line, same)
	d.tidy(e.lock)
}

// drop takes e out of everything: nothing is left of it in the server. The caller holds Core.mu.
func (d *Core) drop(e *Entry) {
	if e.phase == over {
		return
	}
	e.phase = over
	if d.entries[e.Request.ID] == e {
		delete(d.entries, e.Request.ID)
	}
	if e.c != nil {
		delete(e.c.holds, e)
	}
	d.disown(e)
	if e.epitaph.is() {
		d.remember(e.Request.ID, e.epitaph)
	}
	if !e.isSettled() { // the error costs more than all else here
		e.settle(gone(e.Request.Key))
	}
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

// Hint says that a lock was held a moment ago, or that it was not if lasts is 0. For as long as lasts, the next request
// for it begins with the wait, and is spared a try that would most likely fail. The last 1,024 locks are remembered.
func (d *Core) Hint(lock LockID, lasts time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lasts == 0 {
		delete(d.hints, lock)
		return
	}
	if _, known := d.hints[lock]; !known && len(d.hints) >= mostHints {
		for other := range d.hints {
			delete(d.hints, other) // any of them
			break
		}
	}
	d.hints[lock] = d.Clock() + lasts
}
