package mysqllock

import (
	"errors"
	"fmt"

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
	value, ok, err := e.take(c, stmtTry)
	switch {
	case c.broken != nil: // died settles it
	case err != nil:
		e.fail(err)
	case ok:
		e.granted(c, value)
	case e.r.Try:
		held, _, err := c.look(e.r.Key, e.id)
		if c.broken != nil {
			return
		}
		if err != nil { // it is refused all the same
			held = &driver.HeldError{Kind: e.r.Kind, Name: e.r.Name}
		}
		e.refuse(held)
	default:
		e.tell(&driver.HeldError{Kind: e.r.Kind, Name: e.r.Name}) // the rest is told when the wait has begun
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

// take runs the statement that mints the token, and returns what came back with its answer and whether it was granted.
// After an error of stmtTry, which the server may have raised when the lock was taken already, the lock is given back.
func (e *entry) take(c *conn, s statement) (value int64, ok bool, err error) {
	for range interruptions {
		var affected int64
		affected, value, err = c.exec(s, e.grantArgs())
		if err == nil || c.broken != nil {
			return value, affected > 0, err
		}
		if s == stmtTry {
			if _, failed := c.unlock(e.lock); failed != nil && c.broken == nil {
				c.broken = failed // it may be held, and nobody would know
				return 0, false, failed
			}
		}
		if !isPassing(err) || e.isStopped() {
			break
		}
	}
	return 0, false, err
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
func (e *entry) granted(c *conn, value int64) {
	d := e.d
	d.mu.Lock()
	e.token, e.tokens = uint64(value)&^blockFlag, 1
	if value&blockFlag != 0 {
		e.tokens = min(max(e.r.Tokens, 1), mostTokens)
	}
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

// refuse ends a try.
func (e *entry) refuse(held *driver.HeldError) { e.end(held) }

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
		next = append(next, d.toWait(e))
	}
	d.mu.Unlock()
	runAll(next)
}

// look asks who has a lock. heldBy is the session that has it, or 0. It is for the connection's goroutine.
func (c *conn) look(key driver.Key, id lockID) (held *driver.HeldError, heldBy uint64, err error) {
	rows, err := c.query(c.d.lookText(id))
	if err != nil {
		return nil, 0, err
	}
	held, heldBy = heldOf(key, rows)
	return held, heldBy, nil
}

// heldOf reads the answer to lookText. What the row says counts only if the session that wrote it has the lock: another
// may have got it just now, and not have written yet.
func heldOf(key driver.Key, rows []row) (held *driver.HeldError, heldBy uint64) {
	held = &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if len(rows) == 0 {
		return held, 0
	}
	r := readRecord(rows[0])
	if r.heldBy == 0 || r.heldBy != r.session {
		return held, r.heldBy
	}
	held.Owner, held.Client, held.Token, held.Since = r.owner, r.client, r.token, r.since
	return held, r.heldBy
}

// onShared has j run on one of the shared connections, and opens another if all have something to do. Driver.mu must not
// be held.
func (d *Driver) onShared(j job) {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		j.dead(errClosed)
		return
	}
	var best *conn
	least := 0
	for _, c := range d.shared {
		if n := c.load(); best == nil || n < least {
			best, least = c, n
		}
	}
	if (best == nil || least > 0) && !d.dialing && len(d.shared) < d.opts.Shared {
		d.dialing = true
		d.work.Go(d.growShared) // ends with the attempt, which is bounded
	}
	if best == nil {
		d.wanting = append(d.wanting, j)
	}
	d.mu.Unlock()
	if best != nil {
		best.submit(j)
	}
}

// growShared opens a shared connection.
func (d *Driver) growShared() {
	c, err := d.dial(d.base, false)
	d.mu.Lock()
	d.dialing = false
	if err == nil {
		d.shared = append(d.shared, c)
	}
	var wanting []job
	if err == nil || len(d.shared) == 0 {
		wanting, d.wanting = d.wanting, nil
	}
	d.mu.Unlock()
	for _, j := range wanting {
		if err == nil {
			c.submit(j)
		} else {
			j.dead(fmt.Errorf("opening a connection: %w", err))
		}
	}
}
