package shell

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// How the Observer is told, and what becomes of a panic of the user's code. No hold stays behind, and no goroutine of
// this package ends the process. The callers are in the acquire_*, hold_* and release files.

// tellHeld tells the Observer that l is held; how says by what kind of call. If Acquired panics nobody gets the
// lease, so it is given back, and the panic goes on. It runs in the goroutine of the call, without Machine.Mu.
func TellHeld(ctx context.Context, l *core.Hold, how Facts) {
	acquired := ClientOfLock(l.Lock).Config.Observer.Acquired
	if acquired == nil {
		return
	}
	// A flag and not recover: the panic goes on with its stack, and runtime.Goexit is caught too.
	returned := false
	defer func() {
		acquiredReturned(l)
		if !returned {
			disownHold(l)
			_ = UnlockInTime(ctx, l)
		}
	}()
	e := HoldFactsNow(l)
	e.Held, e.Queued, e.Call, e.Cond = 0, how.Queued, how.Call, how.Cond
	acquired(ctx, e)
	returned = true
}

// acquiredReturned notes that Acquired has returned, and tells the end of l if that has come meanwhile.
func acquiredReturned(l *core.Hold) {
	c := ClientOfLock(l.Lock)
	c.Lock()
	late, loss := l.Announced == core.EndOwed, l.Loss
	if l.IsAdopted() {
		loss = nil
	}
	if !late {
		l.Announced = core.AnnouncedStart
	}
	e := holdFacts(l)
	c.Unlock()
	switch {
	case late && loss != nil:
		c.tellLost(e, loss)
	case late:
		c.tell("Released", c.Config.Observer.Released, e)
	}
}

// tellReleased tells the Observer that the hold was given up. err says what the engine has not confirmed. If Acquired
// has not returned yet it tells nothing, and isHeard does.
func TellReleased(l *core.Hold, err error) {
	c := ClientOfLock(l.Lock)
	if c.Config.Observer.Released == nil {
		return
	}
	c.Lock()
	e, news := holdFacts(l), l.Announced
	c.Unlock()
	if news == core.AnnouncedStart {
		e.Err = err
		c.tell("Released", c.Config.Observer.Released, e)
	}
}

// tellWaiting calls Observer.Waiting. A panic is logged and not passed on, because the goroutine may be the driver's.
func (c *Client) tellWaiting(ctx context.Context, e Facts) {
	if waiting := c.Config.Observer.Waiting; waiting != nil {
		c.contain("Waiting", func() { waiting(ctx, e) })
	}
}

// tellFailed calls Observer.Failed, in the goroutine of the call.
func (c *Client) TellFailed(ctx context.Context, e Facts) {
	if failed := c.Config.Observer.Failed; failed != nil {
		failed(ctx, e) // nothing is held, so a panic may go on
	}
}

// tellLost calls Observer.Lost with loss.
func (c *Client) tellLost(e Facts, loss *driver.LostError) {
	e.Err, e.Reason = loss, loss.Reason
	c.tell("Lost", c.Config.Observer.Lost, e)
}

// tell calls the function f of the Observer, if there is one; name is for the log.
func (c *Client) tell(name string, f func(Facts), e Facts) {
	if f != nil {
		c.contain(name, func() { f(e) })
	}
}

// tellLater tells as soon as Machine.Mu has been given up. The caller holds Machine.Mu, and has seen that f is not nil.
func (c *Client) tellLater(name string, f func(Facts), e Facts) {
	c.Machine.AfterUnlock(func() { c.tell(name, f, e) })
}

// contain calls f, a function of the Observer, in any goroutine. A panic of f is logged and goes no further.
func (c *Client) contain(name string, f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.Config.Logger.Error("interlock: Observer."+name+" has panicked", "engine", c.Machine.Traits.Engine,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}()
	f()
}

// guard returns log with a handler whose panics go no further. It does nothing to a Logger that is guarded already.
func Guard(log *slog.Logger) *slog.Logger {
	if _, is := log.Handler().(guarded); is {
		return log
	}
	return slog.New(guarded{log.Handler()})
}

// guarded is a log handler of the user's. Records come from goroutines of this package and from the middle of calls
// that must not end there. So a panic of the handler costs the record and nothing else.
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

// swallow ends a panic. It must be deferred itself: recover works only in the deferred function.
func swallow() { _ = recover() }
