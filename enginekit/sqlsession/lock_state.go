// The table of locks: what each session of this core has and asks for, decided before the server is asked. ask.go and
// wait.go act on what route returns.

package sqlsession

import (
	"slices"
	"time"
)

// lockState is what this core has to do with one lock. The server lets a session in that has the lock already, whatever
// it asks for. So the server is never asked over a session that has a part in the lock, and never by two requests at
// once. Core.mu guards it.
type lockState struct {
	asker *Entry   // tries for it over a shared connection; nil if none does
	line  []*Entry // requests that go on when the asker has its answer
	// owners hold the lock or are giving it back. There are several if they share it, or if the server was quicker than
	// its answer.
	owners []*Entry
}

// lockState returns that of a lock, and makes it if there is none. The caller holds Core.mu.
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

// route decides the next step of a request, and returns what must be done without the mutex. The caller holds Core.mu.
func (d *Core) route(e *Entry) (next func()) {
	p := d.lockState(e.lock)
	switch {
	// Two names, one number: this one takes its next number.
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
	// It was held a moment ago, and a connection for the wait is open: a try would most likely be refused.
	case !e.Request.Try && e.probe == 0 && len(d.pool.idle) > 0 && d.hints[e.lock] > d.Clock():
		d.tidy(e.lock)
		e.untried, e.hinted = true, d.Clock()
		return d.toWait(e)
	}
	p.asker = e
	return e.startAsking
}

// asked ends the turn of the asker of a lock, and returns what must be done for those in line. The caller holds
// Core.mu.
func (d *Core) asked(e *Entry) (next []func()) {
	p := d.lockState(e.lock)
	if p.asker != e {
		return nil
	}
	line := p.line
	// The line is routed anew, one after the other: the first may become the next asker, and the others stand behind it
	// again.
	p.asker, p.line = nil, nil
	for _, other := range line {
		if f := d.route(other); f != nil {
			next = append(next, f)
		}
	}
	d.tidy(e.lock)
	return next
}

// own records that e has the lock. The caller holds Core.mu.
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

// drop takes e out of everything: nothing of it is left in the server. It does nothing the second time. The caller
// holds Core.mu.
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
	if !e.isSettled() { // the error costs more than everything else here
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

// mostHints bounds how many locks have a hint.
const mostHints = 1024

// Hint says that a lock was held a moment ago, or that it was not if lasts is 0. For as long as lasts, the next request
// for it begins with the wait and is spared a try that would most likely fail. At most 1,024 locks have a hint; beyond
// that any of them is forgotten.
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
