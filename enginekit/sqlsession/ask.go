// Trying for a lock over a shared connection: the first question of a request, and how its answer is recorded.
// lock_state.go decides who may ask; wait.go goes on for those that are refused.

package sqlsession

import (
	"errors"
)

// moreAsks is how often a request may go on to another connection because the one before had ended without being asked,
// beyond once for each shared connection. All of them may have ended, as after the sleep of a machine.
const moreAsks = 3

// startAsking tries for the lock over a shared connection. route has made e the asker, so nobody else of this core
// asks.
func (e *Entry) startAsking() { e.ask(e.d.asks()) }

// asks is on how many connections a request is tried at most.
func (d *Core) asks() int { return d.config.Shared + moreAsks }

// ask submits the question to a shared connection that has no part in the lock.
func (e *Entry) ask(left int) { e.d.onSharedBeside(e, e.question(left)) }

// question is the job that tries for e. left is how many connections may still be tried, with this one.
func (e *Entry) question(left int) Job {
	return Job{
		Run: func(c *Conn) { e.try(c, left) },
		Dead: func(err error) {
			// The connection had ended before it was asked, so another one can be.
			if errors.Is(err, ErrLost) && left > 1 {
				e.ask(left - 1)
				return
			}
			e.fail(err)
		},
	}
}

// try asks the server, in the goroutine of a connection. left is as for question.
func (e *Entry) try(c *Conn, left int) {
	if e.begins(c) {
		e.goOn(c, left)
	}
}

// goOn asks and records the answer. The question may have been sent before, by tryInline. It runs in the connection's
// goroutine.
func (e *Entry) goOn(c *Conn, left int) {
	a, err := c.session.Try(e)
	switch {
	case c.broken != nil && errors.Is(err, ErrUnasked) && left > 1:
		e.d.mu.Lock()
		e.leaves()
		// Before it is asked once more, so that the next question does not go to this connection again.
		e.d.retire(c)
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
	// It is held by another: wait for it in the server.
	default:
		e.contend(true)
	}
}

// begins records that c asks for e. It reports false if e is not wanted any more, or if c must not ask since it was
// chosen: it has got a part in the lock, because the answer to an earlier request came late, or it gets no further
// locks. Then the next step is taken here.
func (e *Entry) begins(c *Conn) bool {
	d := e.d
	d.mu.Lock()
	unfit := c.leaving || d.lockState(e.lock).isOn(c)
	if !unfit && !e.ending {
		e.c = c
		c.holds[e] = struct{}{}
		d.mu.Unlock()
		return true
	}
	next := d.asked(e)
	switch {
	case e.phase != asking: // it polls, and its wait goes on
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

// accept records that the lock is held on c, in c's goroutine. If it is not wanted any more, it is given back.
func (e *Entry) accept(c *Conn, a Answer) {
	if !e.granted(c, a) {
		e.giveBack(c)
	}
}

// granted records that the lock is held on c, and reports whether it is still wanted. The goroutine that runs the
// statements of c calls it.
func (e *Entry) granted(c *Conn, a Answer) (wanted bool) {
	d := e.d
	d.mu.Lock()
	e.token, e.tokens = a.Token, a.Tokens
	e.c = c
	c.holds[e] = struct{}{}
	// Before the others go on: they must not ask on c, which the server would let in.
	d.own(e)
	next := d.asked(e)
	c.confirmGrant()
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

// leaves records that the connection has nothing to do with e any more. The caller holds Core.mu.
func (e *Entry) leaves() {
	if e.c != nil {
		delete(e.c.holds, e)
		e.c = nil
	}
}

// fail ends a request that the server could not decide, or was not asked. Nothing of it is left there.
func (e *Entry) fail(err error) { e.end(e.d.Unavailable("acquire", e.Request.Name, err)) }

// end ends a request of which nothing is left in the server.
func (e *Entry) end(err error) {
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	e.settle(err) // unless a cancel has done that, with its own reason
	d.drop(e)
	d.mu.Unlock()
	runAll(next)
}

// contend makes a request wait after it was refused, or because it could not be asked. refused says which.
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
	// What the requests in line have to do is done without the mutex.
	d.mu.Unlock()
	runAll(next)
}

// Locks whose number belongs to another lock.

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
