package interlock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
)

// A Multi in one step: where all of its locks are one client's, and its engine can, they are tried together before
// anything else. Nothing is queued for that and nobody is overtaken. So a refusal has cost a round trip and nothing
// more. The Multi then stands in the lines of its locks one after the other (multi.go), as if it had not tried.

// errOneByOne says that the locks must be taken one after the other. It never reaches a caller.
var errOneByOne = errors.New("not in one step")

// bundle is the locks of a Multi while they are asked for in one step. Only the caller's goroutine uses it.
type bundle struct {
	c        *shell.Client
	locks    []*core.Lock // in the order of taking
	o        *core.Owner
	start    trust.Instant
	grants   []*core.EngineHold
	requests []*driver.Request
}

// takeTogether takes locks, which are all of m in the order of taking, into all in one step. It returns errOneByOne if
// they must be taken one after the other. That is so if they cannot be had in one step. It is so, too, if not all of
// them are free and the caller wants to wait, or if a client merely retains one: a try of that one recalls it.
func (m *Multi) takeTogether(ctx context.Context, all *MultiLease, locks []*core.Lock, try bool) error {
	b := bundle{c: shell.ClientOfLock(locks[0]), locks: locks, o: all.owner}
	if !b.mayTry(ctx) {
		return errOneByOne
	}
	b.start = b.c.Reading()
	leases, err := b.take(ctx)
	if errors.Is(err, ErrHeld) && driver.IsDefinite(err) && (!try || shell.WouldRecall(err) || b.owned()) {
		return errOneByOne
	}
	var ended error
	// All of them before the Observer is told of any, so that all are given back after a panic.
	for i, lease := range leases {
		ended = cmp.Or(ended, all.add(m.given[i], lease))
	}
	b.tell(ctx, leases, err)
	return cmp.Or(err, ended)
}

// mayTry reports whether all locks are one client's whose engine can, and the owner has none of them yet. What it has
// it re-enters, one by one.
func (b *bundle) mayTry(ctx context.Context) bool {
	if len(b.locks) < 2 || b.c.Bundler == nil || ctx.Err() != nil || b.c.CheckOwner(b.o) != nil {
		return false // what is wrong is reported by the first that is taken
	}
	if slices.ContainsFunc(b.locks, func(l *core.Lock) bool { return shell.ClientOfLock(l) != b.c }) {
		return false
	}
	return !b.owned()
}

// owned reports whether the owner has one of the locks, or has lost it and not unlocked it yet.
func (b *bundle) owned() bool {
	if !b.o.HoldsAny() {
		return false
	}
	return slices.ContainsFunc(b.locks, func(m *core.Lock) bool { return b.o.Has(m.Core, m.Key()) })
}

// take asks the engine, unless this process knows the answer. It blocks for one round trip.
func (b *bundle) take(ctx context.Context) ([]*core.Hold, error) {
	c := b.c
	if err := b.begin(); err != nil {
		return nil, err
	}
	defer c.Machine.Background.Done()
	b.prepare()
	bounded := core.CallContext{User: ctx, Base: c.WaitsCtx}
	b.o.Waits.Add(1) // so that a search for deadlocks does not take the owner for stuck
	answers, err := c.Bundler.AcquireAll(&bounded, b.requests)
	b.o.Waits.Add(-1)
	bounded.End()
	c.Lock()
	defer c.Unlock()
	if err != nil {
		return nil, b.refused(err)
	}
	return b.granted(answers)
}

// yieldMutex gives Machine.Mu to others after each atOnce locks. What was seen before may have changed after it. The
// caller holds Machine.Mu.
func (b *bundle) yieldMutex(looked int) {
	if looked%core.AtOnce == core.AtOnce-1 {
		b.c.Unlock()
		b.c.Lock()
	}
}

// begin says why the engine need not be asked, or else counts the request as background.
func (b *bundle) begin() error {
	c := b.c
	c.Lock()
	defer c.Unlock()
	for i, l := range b.locks {
		b.yieldMutex(i)
		// The engine would refuse a lock that this client retains; taken alone it is taken over.
		if g := c.Machine.Passing(l); g != nil && g.Retained() != nil {
			return errOneByOne
		}
		// Waiters and holders of this process are in the way. Of all others the engine itself knows.
		if !b.alone(l) && (c.Machine.Lines[l.LineKey()] != nil || c.Machine.Passing(l) != nil) {
			return c.InTheWay(l)
		}
	}
	if c.Machine.Closed {
		return shell.Wrap("lock", b.locks[0].Key(), ErrClosed)
	}
	c.Machine.Background.Add(1) // under Machine.Mu, so that Close waits for what is under way
	return nil
}

// alone reports whether the request for l is independent of all others in this process; see takeLock.
func (b *bundle) alone(l *core.Lock) bool { return b.o.Named || l.Terms.Single }

// prepare makes the requests, each with an id and a grant of its own.
func (b *bundle) prepare() {
	b.grants, b.requests = make([]*core.EngineHold, len(b.locks)), make([]*driver.Request, len(b.locks))
	for i, l := range b.locks {
		g := l.NewEngineHold(b.c.NewID())
		r := shell.DriverRequest(l, g.ID, b.o)
		r.Try, r.Lost = true, shell.LossOf(g)
		b.grants[i], b.requests[i] = g, &r
	}
}

// refused decides what the engine's err means. If its outcome is unknown, each request is undone. The caller holds
// Machine.Mu.
func (b *bundle) refused(err error) error {
	var held *HeldError
	definite := driver.IsDefinite(err)
	switch {
	case definite && errors.As(err, &held):
		return held
	case definite: // the reason, and which lock it is, is told when they are taken one by one
		return errOneByOne
	}
	b.settle(0, true)
	switch {
	case errors.Is(err, ErrLost): // an operator broke one in the same instant
		return errOneByOne
	case b.c.Machine.Closed:
		return shell.Wrap("lock", b.locks[0].Key(), ErrClosed)
	}
	return shell.Explain(b.locks[0].Key(), err)
}

// granted makes the engine's answers holds. If one of them is over already, all are given back, and the locks are taken
// one by one. The caller holds Machine.Mu, which is given to others now and then.
func (b *bundle) granted(answers []driver.Grant) ([]*core.Hold, error) {
	c := b.c
	leases := make([]*core.Hold, 0, len(b.grants))
	for i, g := range b.grants {
		b.yieldMutex(i)
		now := c.Machine.Now()
		switch {
		case c.Machine.Closed: // Close has released what was taken in before
			b.settle(i, false)
			return nil, shell.Wrap("lock", b.locks[0].Key(), ErrClosed)
		case g.Phase == grants.Revoked || c.Machine.ExpiredOnArrival(answers[i], now): // it ended before anybody got it
			b.settle(i, true)
			for _, l := range leases {
				l.Decline()
			}
			return nil, errOneByOne
		}
		old := c.Machine.Passing(g.Lock)
		g.Accept(answers[i], now)
		g.Alone = b.alone(g.Lock) || old != nil
		l := g.Lock.NewHold(b.o)
		leases = append(leases, l)
		g.AddHold(l, b.start, now, false)
		g.AddSameOwner()
	}
	return leases, nil
}

// settle releases whatever the requests from the number from on have left. The caller holds Machine.Mu.
func (b *bundle) settle(from int, undo bool) {
	for _, g := range b.grants[from:] {
		g.ReleaseInBackground(undo)
	}
}

// tell tells the Observer of the holds, or of the failure; of errOneByOne it tells nothing, because the call goes on.
func (b *bundle) tell(ctx context.Context, leases []*core.Hold, err error) {
	for _, l := range leases {
		shell.TellAcquired(ctx, l.Lock, l, core.Call{})
	}
	if err == nil || errors.Is(err, errOneByOne) {
		return
	}
	at := 0
	if held := (*HeldError)(nil); errors.As(err, &held) {
		at = max(0, slices.IndexFunc(b.locks, func(l *core.Lock) bool { return l.Key().Name == held.Name }))
	}
	shell.TellFailed(ctx, b.locks[at], b.o, core.Call{Start: b.start}, err)
}
