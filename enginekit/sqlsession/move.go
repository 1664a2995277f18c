// Locks whose number belongs to another lock. ask.go and wait.go come here for an answer that is foreign.

package sqlsession

// A lock may be known to the server by a number, and two locks may have the same one. The row of a number carries the
// name to which it belongs, and a request that meets a row of another name takes the number of its next probe. So that
// all clients always find the same number for a name, the row that was met stays for ever: it is pinned before the
// request goes on.

// moveOn leaves a number that belongs to another lock, over a shared connection.
func (e *Entry) moveOn() { e.d.OnShared(Job{Run: e.moveOnOver, Dead: e.fail}) }

// moveOnOver does that over c, in its goroutine, and asks for the lock by the next number. If the row has vanished
// meanwhile, it asks for the same number again.
func (e *Entry) moveOnOver(c *Conn) {
	d := e.d
	pinned, err := c.session.Pin(e)
	if err != nil && c.broken == nil || err != nil && !e.isOn(c) {
		e.fail(err)
		return
	}
	if c.broken != nil {
		return // died settles it
	}
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	switch {
	case e.phase == over:
	case e.ending:
		d.drop(e)
	default:
		if pinned {
			e.probe++
			e.lock = d.dialect.LockOf(e.Request.Key, e.probe)
		}
		e.phase = asking
		if f := d.route(e); f != nil {
			next = append(next, f)
		}
	}
	d.mu.Unlock()
	runAll(next)
}

// isOn reports whether e is one of the requests of c, which go down with it.
func (e *Entry) isOn(c *Conn) bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	_, on := c.holds[e]
	return on
}
