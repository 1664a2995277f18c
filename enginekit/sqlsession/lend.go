// Lending: statements in the goroutine of the caller (docs/rationale.md, PostgreSQL). entry.go and release.go try it
// first.

package sqlsession

import (
	"context"
	"slices"
	"time"
)

// A statement that goes through the connection's goroutine costs two changes of goroutines more than the server needs.
// So a connection that has nothing else to do is lent to the caller's goroutine, which sends the statement and reads
// the answer. The connection's own goroutine looks from time to time whether the caller's context has ended, and makes
// it leave then. Whatever is not decided by then, or needs a further statement, is left to the connection's goroutine,
// which goes on from there.

// Prompt is a [Session] that can be asked in the goroutine that wants the answer. Its methods return false when the
// read deadline of the connection's socket is over. What they have not decided, sent or not, is decided afterwards by
// the same question to the Session, in the goroutine of the connection.
type Prompt interface {
	// TryHere is Session.Try. It reports true if the lock was granted.
	TryHere(e *Entry) (a Answer, granted bool)

	// UnlockHere is Session.Unlock. It reports true if the lock was given back.
	UnlockHere(e *Entry) bool
}

// loan is a goroutine that has borrowed the connection.
type loan struct {
	ctx    context.Context //nolint:containedctx // of the call that borrowed it
	called bool            // back, because ctx has ended; guarded by Conn.mu
}

// lend gives the connection to the caller's goroutine, if its own goroutine rests. The caller gives it back by back.
func (c *Conn) lend(ctx context.Context) bool {
	if c.prompt == nil || ctx.Err() != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// parked is set only while the goroutine waits for wake or its timer, so it does not touch the session meanwhile.
	if !c.parked || c.lent != nil || c.works() {
		return false
	}
	c.lent = &loan{ctx: ctx}
	return true
}

// callBack makes the borrower leave if its context has ended. The connection's goroutine calls it. The context is not
// looked at under Conn.mu, because it may be the user's code.
func (c *Conn) callBack() {
	c.mu.Lock()
	l := c.lent
	c.mu.Unlock()
	if l == nil || l.ctx.Err() == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lent == l && !l.called {
		l.called = true
		_ = c.raw.SetReadDeadline(time.Unix(1, 0)) // fails if the connection is closed, which ends the read as well
	}
}

// back gives the connection back to its goroutine. If first is not nil, it is what that runs before everything else.
func (c *Conn) back(first func(c *Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lent.called {
		// Under the mutex, as callBack: the deadline must not be set again after this.
		_ = c.raw.SetReadDeadline(time.Time{}) // fails only if the connection is closed
	}
	c.lent, c.used = nil, c.d.Clock()
	if c.begun = first != nil; c.begun { // if the connection breaks before, died settles what it was about
		c.queue = slices.Insert(c.queue, 0, Job{Run: first, Dead: func(error) {}})
	}
	if c.works() {
		c.rouse()
	}
}

// askInline is startAsking in the goroutine of a call, which lasts as long as ctx.
func (e *Entry) askInline(ctx context.Context) {
	left := e.d.asks()
	j := e.question(left)
	j.inline = func(c *Conn) bool { return e.tryInline(ctx, c, left) }
	e.d.onSharedBeside(e, j)
}

// tryInline is try in the goroutine of the caller. It returns false if c cannot be lent.
func (e *Entry) tryInline(ctx context.Context, c *Conn, left int) bool {
	if !c.lend(ctx) {
		return false
	}
	if !e.begins(c) {
		c.back(nil)
		return true
	}
	a, granted := c.prompt.TryHere(e)
	switch {
	case !granted:
		c.back(func(c *Conn) { e.goOn(c, left) }) // the same question again, where it may take its time
	case e.granted(c, a):
		c.back(nil)
	default:
		c.back(e.giveBack)
	}
	return true
}

// giveBackInline is giveBack in the goroutine of the caller. It returns false if c cannot be lent.
func (e *Entry) giveBackInline(ctx context.Context, c *Conn) bool {
	switch {
	case !c.lend(ctx):
		return false
	case c.prompt.UnlockHere(e):
		e.gaveBack(c)
		c.back(nil)
	default:
		c.back(e.giveBack)
	}
	return true
}
