package pglock

import (
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// mostAsks is how often a request goes on to another connection because the one before had ended without being asked.
const mostAsks = 3

// startAsking tries for the lock over a shared connection. The caller of route has made e the asker.
func (e *entry) startAsking() { e.ask(mostAsks) }

func (e *entry) ask(left int) {
	e.d.onShared(job{
		run: e.try,
		dead: func(err error) {
			if errors.Is(err, errLost) && left > 1 {
				e.ask(left - 1)
				return
			}
			e.fail(err)
		},
	})
}

// try is the first question to the server, in the goroutine of a shared connection.
func (e *entry) try(c *conn) {
	if !e.begins(c) {
		return
	}
	a, err := e.take(c)
	switch {
	case c.broken != nil && stateOf(err) == stateIdle: // the server had ended the session before, so it was not asked
		e.d.mu.Lock()
		e.leaves()
		e.d.mu.Unlock()
		e.startAsking()
	case c.broken != nil: // died settles it
	case err != nil:
		e.fail(err)
	case a.granted:
		e.granted(c, a.token, a.last)
	case a.foreign:
		e.moveOn(c)
	case e.r.Try:
		e.end(a.held)
	default:
		e.contend()
	}
}

// begins notes that c asks for e, unless that is not wanted any more.
func (e *entry) begins(c *conn) bool {
	d := e.d
	d.mu.Lock()
	if e.ending {
		next := d.asked(e)
		if e.phase == asking {
			d.drop(e)
		}
		d.mu.Unlock()
		runAll(next)
		return false
	}
	e.c = c
	c.holds[e] = struct{}{}
	d.mu.Unlock()
	return true
}

// answer is what stmtTry has brought.
type answer struct {
	granted     bool
	token, last uint64
	foreign     bool // the number belongs to another name
	held        *driver.HeldError
}

// take tries to take the lock. After an error, which the server may have raised when the lock was taken already, and when
// the number belongs to another name, the lock is given back.
func (e *entry) take(c *conn) (a answer, err error) {
	num := e.number()
	for range interruptions {
		found, err := c.exec(stmtTry, e.grantParams(num)...)
		if err == nil && len(found) == 1 {
			return e.read(c, num, found[0])
		}
		if err == nil {
			err = errSwapped // it answers with one row
		}
		if c.broken == nil {
			if failed := c.unlockIfHeld(num); failed != nil && c.broken == nil {
				c.broken = failed // it may be held, and nobody would know
			}
		}
		if c.broken != nil || !isPassing(err) || e.isStopped() {
			return a, err
		}
	}
	return a, errInterrupted
}

// read takes the answer to stmtTry apart.
func (e *entry) read(c *conn, num int64, r [][]byte) (a answer, err error) {
	taken, minted := boolOf(r[0]), boolOf(r[1])
	a.token, a.last = uint64(int64Of(r[2])), uint64(int64Of(r[3]))
	switch {
	case taken && minted:
		a.granted = true
	case taken:
		a.foreign = true
		if _, err := c.unlock(num); err != nil {
			if c.broken == nil {
				c.broken = err // it is held, and nobody would know
			}
			return a, err
		}
	default:
		a.foreign = r[4] != nil && (string(r[4]) != string(e.r.Kind) || string(r[5]) != e.r.Name)
		a.held = heldOf(e.r.Key, r[4], r[5], a.token, r[6], r[7], r[8])
	}
	return a, nil
}

// heldOf says who is in the way, as far as the row of the lock tells.
func heldOf(key driver.Key, kind, name []byte, token uint64, owner, client, since []byte) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if string(kind) == string(key.Kind) && string(name) == key.Name && kind != nil {
		held.Token, held.Owner, held.Client, held.Since = token, string(owner), string(client), timeOf(since)
	}
	return held
}

// errInterrupted is for a statement that was cancelled again and again.
var errInterrupted = errors.New("the statement was cancelled again and again, by an operator or a statement_timeout")

func (e *entry) number() int64 {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	return e.num
}

func (e *entry) isStopped() bool {
	select {
	case <-e.stop:
		return true
	default:
		return false
	}
}

// granted takes in that the lock is held on c, in c's goroutine. If nobody wants it any more it is given back.
func (e *entry) granted(c *conn, token, last uint64) {
	d := e.d
	d.mu.Lock()
	e.token, e.tokens = token, int(last-token)+1
	e.c = c
	c.holds[e] = struct{}{}
	d.own(e) // before the others go on, who must not ask on c
	next := d.asked(e)
	unwanted := e.ending
	if unwanted {
		e.phase = releasing
	} else {
		e.phase = held
		e.settle(nil)
	}
	d.mu.Unlock()
	runAll(next)
	if unwanted {
		e.giveBack(c)
	}
}

// leaves notes that c has nothing to do with e any more. The caller holds Driver.mu.
func (e *entry) leaves() {
	if e.c != nil {
		delete(e.c.holds, e)
		e.c = nil
	}
}

// fail ends a request that the server could not decide, or was not asked. Nothing is left of it there.
func (e *entry) fail(err error) { e.end(unavailable("acquire", e.r.Name, err)) }

// end ends a request of which nothing is left in the server.
func (e *entry) end(err error) {
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	e.settle(err) // unless a cancel has done it, with its own reason
	d.drop(e)
	d.mu.Unlock()
	runAll(next)
}

// contend lets a request that was refused wait.
func (e *entry) contend() {
	d := e.d
	d.mu.Lock()
	e.leaves()
	next := d.asked(e)
	if e.ending {
		d.drop(e)
	} else {
		d.hot[e.num] = d.clock() + hotFor
		next = append(next, d.toWait(e))
	}
	d.mu.Unlock()
	runAll(next)
}
