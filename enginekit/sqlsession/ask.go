package sqlsession

import "errors"

// moreAsks is how often a request goes on to another connection because the one before had ended without being asked,
// beside once for each shared connection: all may have, as after the sleep of a machine.
const moreAsks = 3

// startAsking tries for the lock over a shared connection. The caller of route has made e the asker.
func (e *Entry) startAsking() { e.ask(e.d.asks()) }

// asks is on how many connections a request is asked at most.
func (d *Core) asks() int { return d.config.Shared + moreAsks }

func (e *Entry) ask(left int) { e.d.onSharedBeside(e, e.question(left)) }

func (e *Entry) question(left int) Job {
	return Job{
		Run: func(c *Conn) { e.try(c, left) },
		Dead: func(err error) {
			if errors.Is(err, ErrLost) && left > 1 {
				e.ask(left - 1)
				return
			}
			e.fail(err)
		},
	}
}

// try is the first question to the server, in the goroutine of a connection. So many are left, with this one.
func (e *Entry) try(c *Conn, left int) {
	if e.begins(c) {
		e.goOn(c, left)
	}
}

// goOn is the rest of try, whose question may have been sent before. It is for the connection's goroutine.
func (e *Entry) goOn(c *Conn, left int) {
	a, err := c.session.Try(e)
	switch {
	case c.broken != nil && errors.Is(err, ErrUnasked) && left > 1:
		e.d.mu.Lock()
		e.leaves()
		e.d.retire(c) // before it is asked once more
		e.d.mu.Unlock()
		e.ask(left - 1)
	case c.broken != nil: // died settles it
	case errors.Is(err, ErrUnsure):
		e.doubts(c, err)
	case err != nil:
		e.fail(err)
	case a.Granted:
		e.accept(c, a)
	case a.Foreign:
		e.moveOnOver(c)
	case e.Request.Try:
		e.end(a.Held)
	default:
		e.contend(true)
	}
}

// begins notes that c asks for e, unless that is not wanted any more, or c has got a part in the lock since it was
// chosen: the answer to an earlier request may come late.
func (e *Entry) begins(c *Conn) bool {
	d := e.d
	d.mu.Lock()
	partakes := d.lockState(e.lock).isOn(c)
	if !partakes && !e.ending {
		e.c = c
		c.holds[e] = struct{}{}
		d.mu.Unlock()
		return true
	}
	next := d.asked(e)
	switch {
	case e.phase != asking: // its wait goes on
	case e.ending:
		d.drop(e)
	default:
		if f := d.route(e); f != nil {
			next = append(next, f)
		}
	}
	d.tidy(e.lock)
	d.mu.Unlock()
	runAll(next)
	return false
}

// accept takes in that the lock is held on c, in c's goroutine. If nobody wants it any more it is given back.
func (e *Entry) accept(c *Conn, a Answer) {
	if !e.granted(c, a) {
		e.giveBack(c)
	}
}

// granted takes in that the lock is held on c, and reports whether it still is wanted. It is for who runs the
// statements of c.
func (e *Entry) granted(c *Conn, a Answer) (wanted bool) {
	d := e.d
	d.mu.Lock()
	e.token, e.tokens = a.Token, a.Tokens
	e.c = c
	c.holds[e] = struct{}{}
	d.own(e) // before the others go on, who must not ask on c
	next := d.asked(e)
	wanted = !e.ending
	if wanted {
		e.phase = held
		e.settle(nil)
	} else {
		e.phase = releasing
	}
	prune := d.countGrant()
	d.mu.Unlock()
	runAll(next)
	if prune {
		d.prune()
	}
	return wanted
}

// leaves notes that the connection has nothing to do with e any more. The caller holds Core.mu.
func (e *Entry) leaves() {
	if e.c != nil {
		delete(e.c.holds, e)
		e.c = nil
	}
}

// fail ends a request that the server could not decide, or was not asked. Nothing is left of it there.
func (e *Entry) fail(err error) { e.end(e.d.Unavailable("acquire", e.Request.Name, err)) }

// end ends a request of which nothing is left in the server.
func (e *Entry) end(err error) {
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	e.settle(err) // unless a cancel has done it, with its own reason
	d.drop(e)
	d.mu.Unlock()
	runAll(next)
}

// contend lets a request wait that was refused, or that could not be asked.
func (e *Entry) contend(refused bool) {
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	if e.ending {
		d.drop(e)
	} else {
		e.refused = refused
		next = append(next, d.toWait(e))
	}
	d.mu.Unlock()
	runAll(next)
}
