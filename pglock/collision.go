package pglock

// A lock is known to the server by a number of 64 bits, and two names may have the same one. The row of a number carries
// the name to which it belongs, and whoever meets a row of another name takes the number of his next probe. So that all
// clients find the same number for a name for ever, the row that was met stays for ever: it is pinned before anybody goes on.

// moveOn leaves a number that belongs to another name, in the goroutine of a shared connection, and asks for the lock by the
// next one. If the row has vanished meanwhile, the number is asked for again.
func (e *entry) moveOn(c *conn) {
	d := e.d
	found, err := c.exec(stmtPin, int8Value(e.number()), textValue(string(e.r.Kind)), textValue(e.r.Name))
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
		if len(found) == 1 {
			e.probe++
			e.num = d.hash(d.opts.Table, e.r.Key, e.probe)
		}
		e.phase = asking
		if f := d.route(e); f != nil {
			next = append(next, f)
		}
	}
	d.mu.Unlock()
	runAll(next)
}

// isOn reports that e is one of the requests that c has to do with, which go down with it.
func (e *entry) isOn(c *conn) bool {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	_, on := c.holds[e]
	return on
}
