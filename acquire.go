package interlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// Where Lock and TryLock begin: the owner in the context decides. An owner that holds the lock re-enters (reenter,
// reenterGrant); any other takes it, from this client's own grants or from the engine. What follows is acquire_local.go
// for a local engine, acquire_join.go for a wait, and acquire_direct.go for readers, writers and permits.

// acquire is Lock and TryLock. The label comes first, because it belongs to this call alone. The Observer hears of
// every end, but of nothing that is wrong before there is a client to name.
func (m *lock) acquire(ctx context.Context, try bool) (*Lease, error) {
	if err := m.mayAcquire(ctx); err != nil {
		return nil, err
	}
	m = m.labelled(ctx)
	at := m.client().newCall()
	o := ownerFrom(ctx)
	wait := m.p.wait
	if try {
		wait = 0
	}
	bound, bounded := boundWait(ctx, wait)
	lease, err := m.attempt(bounded, o, try, at)
	if err = bound.end("lock", m.key(), err); err != nil {
		m.tellFailed(ctx, o, at, err)
		return nil, err
	}
	m.tellAcquired(ctx, lease, at)
	return lease, nil
}

// mayAcquire returns the errors of which no Observer can be told: a mutex that nobody made, a nil context. A bad name
// or bad options are left to attempt, so that the Observer is told of them.
func (m *lock) mayAcquire(ctx context.Context) error {
	if err := m.checkMade(); err != nil && (m == nil || m.p == nil || m.client().checkMade() != nil) {
		return err
	}
	return checkContext(ctx)
}

// tellAcquired tells the Observer and the log that an attempt has brought lease.
func (m *lock) tellAcquired(ctx context.Context, lease *Lease, at call) {
	var how Event
	at.end(&how)
	lease.tellAcquired(ctx, how)
	log := m.client().opts.Logger
	if log.Enabled(ctx, slog.LevelDebug) {
		log.LogAttrs(ctx, slog.LevelDebug, "interlock: lock acquired", slog.String("lock", m.key().Name),
			slog.String("engine", m.client().traits.Engine), slog.Uint64("token", lease.Token()),
			slog.String("owner", lease.owner.id))
	}
}

// tellFailed tells the Observer that a call of o has failed with err. o is nil if the call had no owner yet.
func (m *lock) tellFailed(ctx context.Context, o *owner, at call, err error) {
	e := m.event(o)
	at.end(&e)
	e.Waited, e.Err = m.client().reading().Since(at.start), err
	m.client().tellFailed(ctx, e)
}

// attempt is acquire without what the Observer is told.
func (m *lock) attempt(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	if m.p.err != nil {
		return nil, m.p.err
	}
	if m.p.share.direct {
		return m.attemptDirect(ctx, o, try, at)
	}
	lease, err := m.reenter(ctx, o)
	if lease == nil && err == nil {
		return m.take(ctx, o, try, at)
	}
	return lease, err
}

// event describes to an Observer an attempt that has no lease.
func (m *lock) event(o *owner) Event {
	key := m.key()
	e := Event{
		Kind: key.Kind, Name: key.Name, Class: cmp.Or(m.p.class, otherClass),
		Engine: m.client().traits.Engine, c: m.client(),
	}
	if o != nil {
		e.Owner = o.id
	}
	return e
}

// reenter returns another hold if o already has one. It returns nil and no error if o has none, and then the caller
// takes the lock. An owner that lost the lock and has not unlocked it yet gets the loss. To take the lock anew without
// a word would hide that another owner was inside meanwhile.
func (m *lock) reenter(ctx context.Context, o *owner) (*Lease, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	held := m.client().heldBy(o, m.key())
	if held == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	if err := held.Err(); errors.Is(err, ErrLost) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap("lock", m.key(), err)
	}
	if o.named {
		return nil, nil //nolint:nilnil // the engine itself re-enters named owners
	}
	return m.client().reenterGrant(ctx, held.g, o, m)
}

// reenterGrant adds a hold of o to g. On an engine with leases it renews first, in the caller's time: that costs one
// round trip, and asks the engine whether g still exists. Without an answer within half a renewal interval the window
// that was confirmed before still counts. It returns nil and no error if g has ended meanwhile.
func (c *Client) reenterGrant(ctx context.Context, g *grant, o *owner, m *lock) (*Lease, error) {
	if c.hasLeases() {
		patient, cancel := context.WithTimeout(ctx, m.p.Renewal/2)
		defer cancel()
		err := c.renewNow(patient, g, m.p.Lease)
		if errors.Is(err, ErrLost) {
			return nil, err
		}
		// The caller has given up; what was confirmed before is of no use to it.
		if err != nil && ctx.Err() != nil {
			return nil, unavailable("lock", m.key(), ctx.Err())
		}
	}
	c.lock()
	defer c.unlock()
	now := c.now()
	c.expire(g, now)
	// unlocked by another goroutine of o meanwhile
	if g.Phase == grants.Gone || g.holds.first == nil || g.holder().owner != o {
		return nil, nil //nolint:nilnil // says "not held", see reenter
	}
	l := m.newLease(o)
	g.admit(l, now, now, true)
	return l, nil
}

// take acquires the mutex for an owner that does not hold it. Client.mu is held from the look at the queue and the
// grants until join has put the waiter in line. Otherwise a grant that is released in between would pass by it.
func (m *lock) take(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	c := m.client()
	if err := ctx.Err(); err != nil {
		return nil, wrap("lock", m.key(), err)
	}
	if err := c.checkOwner(o); err != nil {
		return nil, err
	}
	c.lock()
	busy := c.busy(m)
	switch {
	// Named owners and candidates go to the engine, past the queue of this client. Only the engine can re-enter a named
	// owner, and each candidate brings a value of its own.
	case o != nil && o.named || m.p.single:
		if !try {
			return c.waitAlone(ctx, m.newWaiter(o, at))
		}
		lease, err := m.tryOnce(ctx, o, false, at)
		if wouldRecall(err) {
			return m.recall(ctx, o, at, err)
		}
		return lease, err
	// A try does not stand in line, but may take what this process retains.
	case busy && try:
		return m.tryBusy(ctx, o, at)
	// Over a network the wait is asked for at once: a try before it would cost a round trip more.
	case busy || !try && !c.traits.Local:
		return c.join(ctx, m.newWaiter(o, at))
	}
	return m.takeFree(ctx, o, try, at)
}

// busy reports whether this client has a grant of m that passes on inside the process, or somebody in line for one.
// The caller holds Client.mu.
func (c *Client) busy(m *lock) bool { return c.queues[m.queueKey()] != nil || c.passing(m) != nil }

// tryBusy takes the grant that this client retains, or says who is in the way. The caller holds Client.mu, which
// tryBusy gives up.
func (m *lock) tryBusy(ctx context.Context, o *owner, at call) (*Lease, error) {
	c := m.client()
	if l := m.newLease(o); c.takeOver(l, at.start) {
		c.unlock()
		return l, nil
	}
	if !c.busy(m) { // what was retained has ended, or was too near its end: nobody here is in the way
		return m.takeFree(ctx, o, true, at)
	}
	err := c.inTheWay(m)
	c.unlock()
	return m.tryBeside(o, at, err)
}

// takeFree asks the engine first, because no goroutine of this client has the lock or waits for it. After a refusal it
// waits, or says who holds the lock. The caller holds Client.mu, which takeFree gives up.
func (m *lock) takeFree(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	lease, err := m.tryOnce(ctx, o, !try, at)
	switch {
	case !errors.Is(err, ErrHeld):
		return lease, err
	case try && wouldRecall(err):
		return m.recall(ctx, o, at, err)
	case try:
		return m.tryBeside(o, at, err)
	}
	m.client().lock()
	return m.client().join(ctx, m.newWaiter(o, at))
}

// tryOnce asks the engine for m once. waits says that the caller waits after a refusal; a local engine then need not
// find out who holds the lock. The caller holds Client.mu, which tryOnce gives up.
func (m *lock) tryOnce(ctx context.Context, o *owner, waits bool, at call) (*Lease, error) {
	if m.client().traits.Local {
		return m.tryLocal(ctx, o, waits, at)
	}
	m.client().unlock()
	return m.client().askAlone(ctx, m.newWaiter(o, at), true)
}

// checkOwner refuses an owner name on an engine without named owners, and one that is empty, too long or not UTF-8.
func (c *Client) checkOwner(o *owner) error {
	if o == nil || !o.named {
		return nil
	}
	if reason, lacks := c.traits.Lacking(driver.NamedOwners); lacks {
		return wrap("lock as owner", driver.Key{Name: o.id}, unsupported(c.traits, reason))
	}
	return validateName("owner", o.id)
}
