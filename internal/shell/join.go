package shell

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// A call that cannot be answered inside the process either joins the line of its lock (join) or asks the engine for
// itself alone (askAlone, waitAlone). acquire.go decides which. The line is in internal/core/line.go, the request in
// acquire_fetch.go, and the wait of the caller in acquire_wait.go.

// join puts w at the end of its queue's line and waits there. The caller holds Machine.Mu, which join gives up.
//
// Both shortcuts before the line, overtaken and takeOver, must be looked at under the same Machine.Mu as the push.
// Otherwise a grant could come free between the look and the push, and w would ask the engine for a lock that its own
// process keeps.
func (c *Client) Join(ctx context.Context, w *core.Waiter) (*core.Hold, error) {
	m, o := w.Hold.Lock, w.Hold.Owner
	if c.Machine.Closed {
		c.Unlock()
		return nil, Wrap("lock", m.Key(), driver.ErrClosed)
	}
	if c.Machine.AlreadyInside(w) {
		c.Unlock()
		return w.Hold, nil
	}
	if c.Machine.TakeOver(w.Hold, w.Start) {
		c.Unlock()
		return w.Hold, nil
	}
	q := c.Machine.LineFor(m)
	w.Line, w.Ready = q, make(chan struct{})
	w.Announce = AnnouncementOf(ctx, w)
	q.Waiters.Push(w)
	// A deadlock search that runs from here on counts w as a wait of o, so this precedes suspectDeadlock.
	o.Waits.Add(1)
	c.suspectDeadlock(o)
	// What is in the way is known without the engine if a goroutine of this process holds the lock, or if the line has
	// asked already. The Observer is told at once then.
	switch g := c.Machine.Passing(m); {
	case g != nil:
		w.Blocker = g.Holder()
		w.MustWait(nil)
	case q.Waiters.First != w:
		w.MustWait(q.InTheWay())
	}
	f := q.PrepareRequest(nil)
	if f == nil {
		c.Unlock()
		return waitFor(ctx, w)
	}
	// Nobody asks for this line yet, so w does, in its own goroutine. The fetch still belongs to the line: see
	// fetch.lead.
	f.Leader = w
	// Counted under Machine.Mu, so that Close waits for the request.
	c.Machine.Background.Add(1)
	c.Unlock()
	return leadRequest(ctx, f, w)
}

// askAlone asks the engine on behalf of w alone, past the queue of this client. It serves tries, which must not wait in
// a line, and named owners, which only the engine can tell apart across processes. For a read/write lock it returns
// errAgain if the owner has got a hold since w was made: then the caller asks beside that hold.
func (c *Client) AskAlone(ctx context.Context, w *core.Waiter, try bool) (*core.Hold, error) {
	c.Lock()
	if c.Machine.Closed {
		c.Unlock()
		return nil, Wrap("lock", w.Hold.Lock.Key(), driver.ErrClosed)
	}
	// Another goroutine of the same owner was quicker. The engine does not know that the two are one owner, so w would
	// wait behind it.
	if w.MayReenter() && c.Machine.LiveEngineHold(w.Hold.Owner, w.Hold.Lock.Key()) != nil {
		c.Unlock()
		return nil, core.ErrAgain
	}
	return c.ask(ctx, w, try)
}

// waitAlone is askAlone for a call that waits: a named owner, or a candidate of an election. The caller holds
// Machine.Mu, which waitAlone gives up.
func (c *Client) waitAlone(ctx context.Context, w *core.Waiter) (*core.Hold, error) {
	switch {
	case c.Machine.Closed:
		c.Unlock()
		return nil, Wrap("lock", w.Hold.Lock.Key(), driver.ErrClosed)
	case c.Machine.AlreadyInside(w):
		c.Unlock()
		return w.Hold, nil
	}
	return c.ask(ctx, w, false)
}

// ask makes the request of askAlone and waitAlone and waits for its answer. The caller holds Machine.Mu, which ask gives
// up, and has seen that the client is open.
func (c *Client) ask(ctx context.Context, w *core.Waiter, try bool) (*core.Hold, error) {
	// An owner that was made for this call is known to no other goroutine. Its waits need no count, because nobody else
	// can wait as this owner. And with a count each grant would search all waiters for others of it.
	shared := !w.Fresh
	f := c.newRequest(w, try)
	f.Waiter, w.Request = w, f
	w.Announce = AnnouncementOf(ctx, w)
	// From here on Close, a deadlock search and a grant to the same owner find w, although it stands in no line.
	c.Machine.LinesOfOne[w] = struct{}{}
	c.Machine.Background.Add(1)
	w.Ready = make(chan struct{})
	if shared {
		w.Hold.Owner.Waits.Add(1)
		defer w.Hold.Owner.Waits.Add(-1)
	}
	if !try {
		c.suspectDeadlock(w.Hold.Owner)
	}
	c.Unlock()
	return leadRequest(ctx, f, w)
}

// inTheWay describes to a try who of this process holds m, or is about to hold it. It names the holder here, or else
// whoever the engine has named to the line; if neither is known, only the client. The caller holds Machine.Mu.
func (c *Client) InTheWay(m *core.Lock) *driver.HeldError {
	if g := c.Machine.Passing(m); g != nil && (g.Holds.First != nil || g.CooldownEnd() < trust.Never) {
		return heldErrorOf(g.Holder())
	}
	if q := c.Machine.Lines[m.LineKey()]; q != nil && q.InTheWay() != nil {
		held := *q.InTheWay()
		return &held
	}
	return &driver.HeldError{Kind: m.Key().Kind, Name: m.Key().Name, Client: c.Config.ClientName}
}

// tryAlongside turns the refusal of a try into re-entry if another goroutine of the same owner was quicker. Otherwise a
// try could be refused because of its own owner. It returns err unchanged if o has no live grant.
func TryAlongside(m *core.Lock, o *core.Owner, at core.Call, err error) (*core.Hold, error) {
	if o == nil {
		return nil, err
	}
	c := ClientOfLock(m)
	c.Lock()
	defer c.Unlock()
	g := c.Machine.LiveEngineHold(o, m.Key())
	if g == nil {
		return nil, err
	}
	l := m.NewHold(o)
	g.AddHold(l, at.Start, c.Machine.Now(), true)
	return l, nil
}
