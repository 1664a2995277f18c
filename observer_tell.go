package interlock

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// How the Observer is told, and what becomes of a panic of the user's code: no hold stays behind, and no goroutine of
// this package ends the process.

// announced is what the Observer knows of a hold. Each Acquired has one Released or Lost, and it comes after.
type announced uint8

const (
	unannounced    announced = iota // Acquired has not returned; of a hold that nobody gets it is never called
	announcedStart                  // the end is told when it comes
	endOwed                         // the end came while it was unannounced: who calls Acquired tells the end then
)

// tellAcquired tells the Observer that l is held; how says by what sort of call. If that panics nobody gets to know l,
// so it is given back, and the panic goes on.
func (l *Lease) tellAcquired(ctx context.Context, how Event) {
	acquired := l.m.c.opts.Observer.Acquired
	if acquired == nil {
		return
	}
	returned := false
	defer func() {
		l.isHeard()
		if !returned {
			l.disown()
			_ = l.unlockInTime(ctx)
		}
	}()
	e := l.eventNow()
	e.Held, e.Queued, e.Call, e.Cond = 0, how.Queued, how.Call, how.Cond
	acquired(ctx, e)
	returned = true
}

// isHeard takes in that Acquired was called, and tells the end of l if that has come meanwhile.
func (l *Lease) isHeard() {
	c := l.m.c
	c.lock()
	late, loss := l.announced == endOwed, l.loss
	if l.isAdopted() {
		loss = nil
	}
	if !late {
		l.announced = announcedStart
	}
	e := l.event()
	c.unlock()
	switch {
	case late && loss != nil:
		c.tellLost(e, loss)
	case late:
		c.tell("Released", c.opts.Observer.Released, e)
	}
}

// tellReleased tells the Observer that the hold was given up; err says what the engine has not confirmed.
func (l *Lease) tellReleased(err error) {
	c := l.m.c
	if c.opts.Observer.Released == nil {
		return
	}
	c.lock()
	e, news := l.event(), l.announced
	c.unlock()
	if news == announcedStart {
		e.Err = err
		c.tell("Released", c.opts.Observer.Released, e)
	}
}

func (c *Client) tellWaiting(ctx context.Context, e Event) {
	if waiting := c.opts.Observer.Waiting; waiting != nil {
		c.contain("Waiting", func() { waiting(ctx, e) })
	}
}

func (c *Client) tellFailed(ctx context.Context, e Event) {
	if failed := c.opts.Observer.Failed; failed != nil {
		failed(ctx, e) // nothing is held, so a panic may go on
	}
}

func (c *Client) tellLost(e Event, loss *LostError) {
	e.Err, e.Reason = loss, loss.Reason
	c.tell("Lost", c.opts.Observer.Lost, e)
}

// tell calls the function of that name, if the Observer has it.
func (c *Client) tell(name string, f func(Event), e Event) {
	if f != nil {
		c.contain(name, func() { f(e) })
	}
}

// tellLater tells as soon as Client.mu has been given up. The caller holds Client.mu, and has seen that f is not nil.
func (c *Client) tellLater(name string, f func(Event), e Event) {
	c.afterUnlock(func() { c.tell(name, f, e) })
}

// contain calls f, a function of the Observer, in a goroutine which may be anybody's. A panic of f is logged and goes
// no further.
func (c *Client) contain(name string, f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		log := c.opts.Logger
		if log == discards { // a bug of the program's is not to go unnoticed because nobody has asked for a log
			log = guard(slog.Default())
		}
		log.Error("interlock: Observer."+name+" has panicked", "engine", c.traits.Engine,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}()
	f()
}

// discards is the Logger of a client that was given none.
var discards = slog.New(slog.DiscardHandler)

// guard returns log with a handler whose panics go no further.
func guard(log *slog.Logger) *slog.Logger {
	if _, is := log.Handler().(guarded); is || log == discards {
		return log
	}
	return slog.New(guarded{log.Handler()})
}

// guarded is a log handler of the user's. Records come from goroutines of this package and from the middle of calls
// that must not end there, so a panic of the handler costs the record and nothing else.
type guarded struct{ slog.Handler }

// Enabled asks the user's handler.
func (g guarded) Enabled(ctx context.Context, level slog.Level) (is bool) {
	defer swallow()
	return g.Handler.Enabled(ctx, level)
}

// Handle hands the record to the user's handler.
func (g guarded) Handle(ctx context.Context, r slog.Record) (err error) {
	defer swallow()
	return g.Handler.Handle(ctx, r)
}

// WithAttrs guards what the user's handler returns.
func (g guarded) WithAttrs(attrs []slog.Attr) (with slog.Handler) {
	with = g
	defer swallow()
	return guarded{g.Handler.WithAttrs(attrs)}
}

// WithGroup guards what the user's handler returns.
func (g guarded) WithGroup(name string) (with slog.Handler) {
	with = g
	defer swallow()
	return guarded{g.Handler.WithGroup(name)}
}

func swallow() { _ = recover() }
