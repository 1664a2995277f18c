package sqlsession

import (
	"context"
	"slices"
	"time"
)

// A statement that goes through the connection's goroutine costs two changes of goroutines more than the server needs.
// So who wants to know the answer sends it and reads it himself, if the connection has nothing else to do: it is lent
// to his goroutine. Its own looks from time to time whether his context has ended, and has him leave then. Whatever is
// not decided by then, or needs a further statement, is left to the connection's goroutine, which goes on from there.

// Prompt is a [Session] that can be asked in the goroutine of who wants the answer. Its methods return false when the
// read deadline of the connection's socket is over. What they have not decided, whether it was sent or not, is decided
// by the same question to the Session afterwards, in the goroutine of the connection.
type Prompt interface {
	// TryHere is Session.Try. It reports true if the lock was granted.
	TryHere(e *Entry) (a Answer, granted bool)

	// UnlockHere is Session.Unlock. It reports true if the lock was given back.
	UnlockHere(e *Entry) bool
}

// loan is who has the connection.
type loan struct {
	ctx    context.Context //nolint:containedctx // of the call that has it
	called bool            // back, because ctx has ended; guarded by Conn.mu
}

// lend gives the connection to the goroutine of the caller for as long as ctx lasts, if its own rests. The caller gives
// it back by back.
func (c *Conn) lend(ctx context.Context) bool {
	if c.prompt == nil || ctx.Err() != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.parked || c.lent != nil || c.works() {
		return false
	}
	c.lent = &loan{ctx: ctx}
	return true
}

// callBack makes who has the connection leave if his context, which is not looked at under Conn.mu, has ended.
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

// back gives the connection back to its goroutine, which runs first before everything else if that is not nil.
func (c *Conn) back(first func(c *Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lent.called {
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

// askInline is startAsking in the goroutine of a call that lasts as long as ctx.
func (e *Entry) askInline(ctx context.Context) {
	left := e.d.asks()
	j := e.question(left)
	j.inline = func(c *Conn) bool { return e.tryInline(ctx, c, left) }
	e.d.onSharedBeside(e, j)
}

// tryInline is try in the goroutine of who asks. It returns false if c cannot be lent to that.
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
		c.back(func(c *Conn) { e.goOn(c, left) })
	case e.granted(c, a):
		c.back(nil)
	default:
		c.back(e.giveBack)
	}
	return true
}

// giveBackInline is giveBack in the goroutine of who unlocks. It returns false if c cannot be lent to that.
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
