package shell

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// How the Observer is told, and what becomes of a panic of the user's code. No hold stays behind, and no goroutine of
// this package ends the process. The callers are acquire.go, hold.go and release.go.

// TellHeld tells the Observer that l is held; how says by what kind of call. If Acquired panics nobody gets the
// lease, so it is given back, and the panic goes on. It runs in the goroutine of the call, without Machine.Mu.
func TellHeld(ctx context.Context, l *core.Hold, how Facts) {
	c := ClientOf(l.Lock)
	acquired := c.Config.Observer.Acquired
	if acquired == nil {
		return
	}
	// A flag and not recover: the panic goes on with its stack, and runtime.Goexit is caught too.
	returned := false
	defer func() {
		acquiredReturned(l)
		if !returned {
			c.work.disown(ctx, l)
		}
	}()
	e := HoldFactsNow(l)
	e.Held, e.Queued, e.Call, e.Cond = 0, how.Queued, how.Call, how.Cond
	acquired(ctx, e)
	returned = true
}

// acquiredReturned notes that Acquired has returned, and tells the end of l if that has come meanwhile.
func acquiredReturned(l *core.Hold) {
	c := ClientOf(l.Lock)
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

// TellReleased tells the Observer that the hold was given up. err says what the engine has not confirmed. If Acquired
// has not returned yet it tells nothing, and acquiredReturned does.
func TellReleased(l *core.Hold, err error) {
	c := ClientOf(l.Lock)
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

// TellFailed calls Observer.Failed, in the goroutine of the call.
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
	c.AfterUnlock(func() { c.tell(name, f, e) })
}

// contain calls f, a function of the Observer, in any goroutine. A panic of f is logged and goes no further.
func (c *Client) contain(name string, f func()) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		c.Config.Logger.Error("interlock: Observer."+name+" has panicked", "engine", c.Traits.Engine,
			"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}()
	f()
}

// Guard returns log with a handler whose panics go no further. It does nothing to a Logger that is guarded already.
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

// One call as the Observer sees it: Waiting at most once, and never after the end of the call. wait.go
// announces; acquire.go ends the call.

// NewCall begins a call. It allocates only if the Observer has Waiting.
func (c *Client) NewCall() core.Call {
	at := core.Call{Start: c.Reading()}
	if c.Config.Observer.Waiting != nil {
		at.Waiting = new(core.Announcement)
	}
	return at
}

// tellWaiting calls Waiting, unless it has been called or the call is over. It may run in any goroutine, beside the end
// of the call.
func tellWaiting(ctx context.Context, a *core.Announcement, c *Client, e Facts) {
	a.Mu.Lock()
	if a.Told != nil || a.Over {
		a.Mu.Unlock()
		return
	}
	told := make(chan struct{})
	a.Told = told
	a.Mu.Unlock()
	defer close(told) // also if the user's code ends the goroutine (runtime.Goexit)
	c.tellWaiting(ctx, e)
}

// EndCall ends the call for its announcement, and says in e whether it had to wait.
func EndCall(at core.Call, e *Facts) {
	if e.Queued = CallOver(at); e.Queued {
		e.Call = at.Waiting
	}
}

// CallOver ends the call for its announcement, and reports whether Waiting has been called. If Waiting is running, over
// blocks until it has returned: the Observer must hear of the beginning first.
func CallOver(at core.Call) bool {
	a := at.Waiting
	if a == nil {
		return false
	}
	a.Mu.Lock()
	a.Over = true
	told := a.Told
	a.Mu.Unlock()
	if told == nil {
		return false
	}
	<-told
	return true
}

// AnnouncementOf returns a function that tells the Observer that w waits, or nil if nobody listens. The function calls
// the user's code, so it runs without Machine.Mu.
func AnnouncementOf(ctx context.Context, w *core.Waiter) func() {
	if w.Waiting == nil {
		return nil
	}
	return func() {
		e := factsOf(w.Hold.Lock, w.Hold.Owner)
		e.Call = w.Waiting
		tellWaiting(ctx, w.Waiting, ClientOf(w.Hold.Lock), e)
	}
}

// How a hold ends, and who is told: its contexts, channels and waits here, at once; the Observer and the log once
// Machine.Mu has been given up. lease.go has what its owner sees; internal/core/end.go and release.go decide when.

// lost tells that l was lost. The caller holds Machine.Mu.
func (c *Client) lost(l *core.Hold, lost *driver.LostError) {
	// Read under Machine.Mu; the callback below runs after it.
	told, held := l.Announced == core.AnnouncedStart, l.End.Since(l.Since)
	c.AfterUnlock(func() {
		if told {
			c.tellLost(HoldFactsNow(l), lost)
		}
		attrs := []any{
			"kind",
			string(l.Lock.Key().Kind),
			"lock",
			l.Lock.Key().Name,
			"class",
			l.Lock.Terms.Class,
			"engine",
			c.Traits.Engine,
			"token",
			lost.Token,
			"owner",
			l.Owner.ID,
			"held",
			held,
			"reason",
			string(lost.Reason),
		}
		if lost.Cause != nil {
			attrs = append(attrs, "err", lost.Cause)
		}
		c.Config.Logger.Error("interlock: lock lost", attrs...)
	})
}

// tellAdopted tells that the hold has gone on to another client. Its owner no longer has it and need not unlock it. The
// caller holds Machine.Mu.
func tellAdopted(l *core.Hold) {
	c := ClientOf(l.Lock)
	c.AfterUnlock(func() {
		l.Owner.Remove(l)
		TellReleased(l, nil)
		c.Config.Logger.Info("interlock: another client has adopted the lock", "lock", l.Lock.Key().Name, "engine",
			c.Traits.Engine, "token", TokenOf(l), "owner", l.Owner.ID)
	})
}

// HoldFactsNow is event for a caller that does not hold Machine.Mu.
func HoldFactsNow(l *core.Hold) Facts {
	c := ClientOf(l.Lock)
	c.Lock()
	defer c.Unlock()
	return holdFacts(l)
}

// holdFacts describes the hold to an Observer: Held is the time until now, or until the hold ended. The caller holds
// Machine.Mu.
func holdFacts(l *core.Hold) Facts {
	c := ClientOf(l.Lock)
	until := c.Now()
	if l.Ended() != nil {
		until = l.End
	}
	return Facts{
		Kind:   l.Lock.Key().Kind,
		Name:   l.Lock.Key().Name,
		Class:  l.Lock.Terms.Class,
		Engine: c.Traits.Engine,
		Hold:   l,
		Owner:  l.Owner.ID,
		Token:  l.Token(),
		Waited: l.Waited,
		Held:   until.Since(l.Since),
		Local:  l.Local,
		Client: c,
	}
}

// EndOf says how h has ended, or returns nil. It looks at the clock itself.
func EndOf(h *core.Hold) error {
	c := ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Now())
	return h.Ended()
}

// TokenOf returns the token of h, which an upgrade may change.
func TokenOf(h *core.Hold) uint64 {
	c := ClientOf(h.Lock)
	if h.Lock.Terms.Share.Direct { // of a mutex the token never changes, so it needs no lock
		c.Lock()
		defer c.Unlock()
	}
	return h.Token()
}

// What the Observer is told of retention: the end never before the beginning.

// RetentionNews is what the Observer knows of one retention. Guarded by Machine.Mu.
type RetentionNews struct {
	c          *Client
	e          Facts // what Retained was told
	told, over bool  // Retained has returned; the retention has ended
}

// TellRetained tells the Observer that g is retained from now on, once Machine.Mu has been given up. It returns nil if
// nobody listens. The caller holds Machine.Mu.
func TellRetained(g *core.EngineHold) *RetentionNews {
	c := ClientOf(g.Lock)
	if o := c.Config.Observer; o.Retained == nil && o.RetentionEnded == nil {
		return nil
	}
	n := &RetentionNews{c: c, e: holdFacts(g.Last)}
	c.AfterUnlock(func() {
		c.tell("Retained", c.Config.Observer.Retained, n.e)
		c.Lock()
		defer c.Unlock()
		n.told = true
		if n.over { // it ended while Retained ran, so nobody has told the end yet
			n.tellEnd()
		}
	})
	return n
}

// End tells the Observer that the retention is over, once Retained has returned. n may be nil. The caller holds
// Machine.Mu.
func (n *RetentionNews) End() {
	if n == nil {
		return
	}
	n.over = true
	if n.told {
		n.tellEnd()
	}
}

// tellEnd tells the end. Of the event only what identifies the hold is left. The caller holds Machine.Mu.
func (n *RetentionNews) tellEnd() {
	if ended := n.c.Config.Observer.RetentionEnded; ended != nil {
		e := n.e
		e.Waited, e.Held, e.Local = 0, 0, false
		n.c.tellLater("RetentionEnded", ended, e)
	}
}

// TellRecalled tells the Observer, once, that another client wants g. The engine may say so before anybody here has got
// g: then there is nothing to tell yet. The caller holds Machine.Mu.
func TellRecalled(g *core.EngineHold) {
	c := ClientOf(g.Lock)
	recalled := c.Config.Observer.Recalled
	if recalled == nil || g.RecallTold || g.Phase == grants.Gone || g.Holder() == nil {
		return
	}
	g.RecallTold = true
	c.tellLater("Recalled", recalled, holdFacts(g.Holder()))
}

// Listeners are the functions of the Observer of the package above; what it lacks is nil.
type Listeners struct {
	Waiting, Acquired, Upgraded, Failed func(ctx context.Context, e Facts)

	Renewed, RenewalFailed, Lost, Released, Retained, RetentionEnded, Recalled, Settling, Settled func(e Facts)
}

// Facts are what an Event of the package above says; the fields are described there.
type Facts struct {
	Kind                driver.Kind
	Name, Class, Engine string
	Owner               string
	Token               uint64
	Hold                *core.Hold         // which hold it is
	Call                *core.Announcement // which call it is, if it had to wait

	Waited, Held, Remained, Margin time.Duration

	Queued, Cond, Local, Late, Undo bool

	Reason driver.LostReason
	Err    error

	Client *Client // which tells it
}

// factsOf describes to an Observer an attempt that has no lease.
func factsOf(m *core.Lock, o *core.Owner) Facts {
	c := ClientOf(m)
	key := m.Key()
	e := Facts{
		Kind: key.Kind, Name: key.Name, Class: cmp.Or(m.Terms.Class, otherClass),
		Engine: c.Traits.Engine, Client: c,
	}
	if o != nil {
		e.Owner = o.ID
	}
	return e
}
