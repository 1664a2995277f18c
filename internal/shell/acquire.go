package shell

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// Where Lock and TryLock begin: the owner in the context decides. An owner that holds the lock re-enters (reenter,
// reenterGrant); any other takes it, from this client's own grants or from the engine. What follows is acquire_local.go
// for a local engine, acquire_join.go for a wait, and acquire_direct.go for readers, writers and permits.

// acquire is Lock and TryLock. The label comes first, because it belongs to this call alone. The Observer hears of
// every end, but of nothing that is wrong before there is a client to name.
func Acquire(ctx context.Context, m *core.Lock, try bool) (*core.Hold, error) {
	if err := mayAcquire(ctx, m); err != nil {
		return nil, err
	}
	m = Labelled(ctx, m)
	at := ClientOfLock(m).NewCall()
	o := OwnerFrom(ctx)
	wait := m.Terms.Wait
	if try {
		wait = 0
	}
	bound, bounded := BoundWait(ctx, wait)
	lease, err := attemptLock(bounded, m, o, try, at)
	if err = bound.End("lock", m.Key(), err); err != nil {
		TellFailed(ctx, m, o, at, err)
		return nil, err
	}
	TellAcquired(ctx, m, lease, at)
	return lease, nil
}

// mayAcquire returns the errors of which no Observer can be told: a mutex that nobody made, a nil context. A bad name
// or bad options are left to attempt, so that the Observer is told of them.
func mayAcquire(ctx context.Context, m *core.Lock) error {
	if err := CheckLock(m); err != nil && (m == nil || m.Terms == nil || ClientOfLock(m).CheckMade() != nil) {
		return err
	}
	return CheckContext(ctx)
}

// tellAcquired tells the Observer and the log that an attempt has brought lease.
func TellAcquired(ctx context.Context, m *core.Lock, lease *core.Hold, at core.Call) {
	var how Facts
	EndCall(at, &how)
	TellHeld(ctx, lease, how)
	log := ClientOfLock(m).Config.Logger
	if log.Enabled(ctx, slog.LevelDebug) {
		log.LogAttrs(ctx, slog.LevelDebug, "interlock: lock acquired", slog.String("lock", m.Key().Name),
			slog.String("engine", ClientOfLock(m).Machine.Traits.Engine), slog.Uint64("token", TokenOf(lease)),
			slog.String("owner", lease.Owner.ID))
	}
}

// tellFailed tells the Observer that a call of o has failed with err. o is nil if the call had no owner yet.
func TellFailed(ctx context.Context, m *core.Lock, o *core.Owner, at core.Call, err error) {
	e := factsOf(m, o)
	EndCall(at, &e)
	e.Waited, e.Err = ClientOfLock(m).Reading().Since(at.Start), err
	ClientOfLock(m).TellFailed(ctx, e)
}

// attemptLock is acquire without what the Observer is told.
func attemptLock(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	if m.Terms.Err != nil {
		return nil, m.Terms.Err
	}
	if m.Terms.Share.Direct {
		return AttemptDirect(ctx, m, o, try, at)
	}
	lease, err := reenter(ctx, m, o)
	if lease == nil && err == nil {
		return takeLock(ctx, m, o, try, at)
	}
	return lease, err
}

// factsOf describes to an Observer an attempt that has no lease.
func factsOf(m *core.Lock, o *core.Owner) Facts {
	key := m.Key()
	e := Facts{
		Kind: key.Kind, Name: key.Name, Class: cmp.Or(m.Terms.Class, otherClass),
		Engine: ClientOfLock(m).Machine.Traits.Engine, Client: ClientOfLock(m),
	}
	if o != nil {
		e.Owner = o.ID
	}
	return e
}

// reenter returns another hold if o already has one. It returns nil and no error if o has none, and then the caller
// takes the lock. An owner that lost the lock and has not unlocked it yet gets the loss. To take the lock anew without
// a word would hide that another owner was inside meanwhile.
func reenter(ctx context.Context, m *core.Lock, o *core.Owner) (*core.Hold, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	held := ClientOfLock(m).heldBy(o, m.Key())
	if held == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	if err := EndOf(held); errors.Is(err, driver.ErrLost) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, Wrap("lock", m.Key(), err)
	}
	if o.Named {
		return nil, nil //nolint:nilnil // the engine itself re-enters named owners
	}
	return ClientOfLock(m).reenterGrant(ctx, held.Engine, o, m)
}

// reenterGrant adds a hold of o to g. On an engine with leases it renews first, in the caller's time: that costs one
// round trip, and asks the engine whether g still exists. Without an answer within half a renewal interval the window
// that was confirmed before still counts. It returns nil and no error if g has ended meanwhile.
func (c *Client) reenterGrant(ctx context.Context, g *core.EngineHold, o *core.Owner, m *core.Lock) (*core.Hold, error) {
	if c.Machine.HasLeases() {
		patient, cancel := context.WithTimeout(ctx, m.Terms.Renewal/2)
		defer cancel()
		err := c.renewNow(patient, g, m.Terms.Lease)
		if errors.Is(err, driver.ErrLost) {
			return nil, err
		}
		// The caller has given up; what was confirmed before is of no use to it.
		if err != nil && ctx.Err() != nil {
			return nil, Unavailable("lock", m.Key(), ctx.Err())
		}
	}
	c.Lock()
	defer c.Unlock()
	now := c.Machine.Now()
	c.Machine.Expire(g, now)
	// unlocked by another goroutine of o meanwhile
	if g.Phase == grants.Gone || g.Holds.First == nil || g.Holder().Owner != o {
		return nil, nil //nolint:nilnil // says "not held", see reenter
	}
	l := m.NewHold(o)
	g.AddHold(l, now, now, true)
	return l, nil
}

// takeLock acquires the mutex for an owner that does not hold it. Machine.Mu is held from the look at the queue and the
// grants until join has put the waiter in line. Otherwise a grant that is released in between would pass by it.
func takeLock(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	c := ClientOfLock(m)
	if err := ctx.Err(); err != nil {
		return nil, Wrap("lock", m.Key(), err)
	}
	if err := c.CheckOwner(o); err != nil {
		return nil, err
	}
	c.Lock()
	busy := c.busy(m)
	switch {
	// Named owners and candidates go to the engine, past the queue of this client. Only the engine can re-enter a named
	// owner, and each candidate brings a value of its own.
	case o != nil && o.Named || m.Terms.Single:
		if !try {
			return c.waitAlone(ctx, NewWaiter(m, o, at))
		}
		lease, err := tryOnce(ctx, m, o, false, at)
		if WouldRecall(err) {
			return recallLock(ctx, m, o, at, err)
		}
		return lease, err
	// A try does not stand in line, but may take what this process retains.
	case busy && try:
		return tryBusy(ctx, m, o, at)
	// Over a network the wait is asked for at once: a try before it would cost a round trip more.
	case busy || !try && !c.Machine.Traits.Local:
		return c.Join(ctx, NewWaiter(m, o, at))
	}
	return takeFree(ctx, m, o, try, at)
}

// busy reports whether this client has a grant of m that passes on inside the process, or somebody in line for one.
// The caller holds Machine.Mu.
func (c *Client) busy(m *core.Lock) bool {
	return c.Machine.Lines[m.LineKey()] != nil || c.Machine.Passing(m) != nil
}

// tryBusy takes the grant that this client retains, or says who is in the way. The caller holds Machine.Mu, which
// tryBusy gives up.
func tryBusy(ctx context.Context, m *core.Lock, o *core.Owner, at core.Call) (*core.Hold, error) {
	c := ClientOfLock(m)
	if l := m.NewHold(o); c.Machine.TakeOver(l, at.Start) {
		c.Unlock()
		return l, nil
	}
	if !c.busy(m) { // what was retained has ended, or was too near its end: nobody here is in the way
		return takeFree(ctx, m, o, true, at)
	}
	err := c.InTheWay(m)
	c.Unlock()
	return TryAlongside(m, o, at, err)
}

// takeFree asks the engine first, because no goroutine of this client has the lock or waits for it. After a refusal it
// waits, or says who holds the lock. The caller holds Machine.Mu, which takeFree gives up.
func takeFree(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	lease, err := tryOnce(ctx, m, o, !try, at)
	switch {
	case !errors.Is(err, driver.ErrHeld):
		return lease, err
	case try && WouldRecall(err):
		return recallLock(ctx, m, o, at, err)
	case try:
		return TryAlongside(m, o, at, err)
	}
	ClientOfLock(m).Lock()
	return ClientOfLock(m).Join(ctx, NewWaiter(m, o, at))
}

// tryOnce asks the engine for m once. waits says that the caller waits after a refusal; a local engine then need not
// find out who holds the lock. The caller holds Machine.Mu, which tryOnce gives up.
func tryOnce(ctx context.Context, m *core.Lock, o *core.Owner, waits bool, at core.Call) (*core.Hold, error) {
	if ClientOfLock(m).Machine.Traits.Local {
		return tryLocal(ctx, m, o, waits, at)
	}
	ClientOfLock(m).Unlock()
	return ClientOfLock(m).AskAlone(ctx, NewWaiter(m, o, at), true)
}

// checkOwner refuses an owner name on an engine without named owners, and one that is empty, too long or not UTF-8.
func (c *Client) CheckOwner(o *core.Owner) error {
	if o == nil || !o.Named {
		return nil
	}
	if reason, lacks := c.Machine.Traits.Lacking(driver.NamedOwners); lacks {
		return Wrap("lock as owner", driver.Key{Name: o.ID}, core.Unsupported(c.Machine.Traits, reason))
	}
	return ValidateName("owner", o.ID)
}
