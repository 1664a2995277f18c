package interlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// A try on a local engine (memory, files). The engine answers at once, so the call is made in the caller's goroutine.
// Nothing of what a wait needs is made for it: no waiter, fetch, channel or context. Most locks of such an engine are
// taken in this way, and the core's own work is a large part of what they cost. A refusal goes on to acquire_join.go.

// tryLocal asks a local engine for m, once. waits says that the caller will wait after a refusal, so that the engine
// need not find out who holds the lock. The caller holds Client.mu, which tryLocal gives up.
func (m *lock) tryLocal(ctx context.Context, o *owner, waits bool, at call) (*Lease, error) {
	c := m.client()
	if c.closed {
		c.unlock()
		return nil, wrap("lock", m.key(), ErrClosed)
	}
	c.background.Add(1) // under Client.mu, so that Close waits for what is under way
	defer c.background.Done()
	c.unlock()
	g, l := m.newHold(o)
	// The driver is called without Client.mu, as everywhere: files have to be read.
	answer, err := g.ask(l.owner, waits)
	c.lock()
	now := c.now()
	switch gone := errors.Is(err, ErrLost); {
	case gone || err == nil && (g.Phase == grants.Revoked || c.tooLate(answer, now)):
		return m.tryAgain(ctx, l, g, gone, at)
	case err != nil:
		// The lock may have been taken although the engine reported an error.
		if !driver.IsDefinite(err) {
			g.settle(true)
		}
		c.unlock()
		return nil, explain(m.key(), err)
	// Close has ended everything that it found, and this hold came after that.
	case c.closed:
		g.settle(false)
		c.unlock()
		return nil, wrap("lock", m.key(), ErrClosed)
	}
	old := c.passing(m)
	g.taken(answer, now)
	// With an older grant of this lock in the process only one of the two may serve the line.
	g.Alone = l.owner.named || old != nil
	g.admit(l, at.start, now, false)
	g.admitOthers()
	c.unlock()
	return l, nil
}

// tryAgain asks once more after a grant that was over before it could be used. An operator broke it, or this process
// stood still for longer than the lease. gone says that the engine reported that itself. The caller holds Client.mu,
// which tryAgain gives up.
func (m *lock) tryAgain(ctx context.Context, l *Lease, g *grant, gone bool, at call) (*Lease, error) {
	g.settle(gone)
	m.client().unlock()
	return m.client().askAlone(ctx, &waiter{lease: l, call: at}, true)
}

// newHold returns a grant that must be asked for and its first hold, for o or for a new owner. All three are one
// allocation: most grants see no other hold, so they live equally long.
func (m *lock) newHold(o *owner) (*grant, *Lease) {
	first := &struct {
		grant grant
		lease Lease
		owner owner
	}{}
	g, l := &first.grant, &first.lease
	l.self = l
	*g = grant{Grant: grants.Grant{ID: m.client().newID(), Asked: m.p.Lease}, m: m, index: -1}
	l.m, l.owner = m, o
	if o == nil {
		first.owner.id = g.ID // one string for both
		l.owner = &first.owner
	}
	return g, l
}

var (
	// requests and releases keep the structs with which a local engine is asked. It keeps no pointer to them once it
	// has answered, so each can be used again at once.
	requests = sync.Pool{New: func() any { return new(driver.Request) }}
	releases = sync.Pool{New: func() any { return new(driver.Release) }}
)

// ask tries to get g for o; waits is as in tryLocal. Only the client's own end cancels it: a local engine answers at
// once.
func (g *grant) ask(o *owner, waits bool) (driver.Grant, error) {
	r := requests.Get().(*driver.Request)
	*r = g.m.request(g.ID, o)
	r.Try, r.SkipHolder, r.Lost = true, waits, g.lostByEngine
	g.askForRecalls(r)
	answer, err := g.m.client().d.Acquire(g.m.client().base, r)
	*r = driver.Request{}
	requests.Put(r)
	return answer, err
}

// releaseLocal gives g back to a local engine, which keeps the lock closed for keep.
func (g *grant) releaseLocal(keep time.Duration) error {
	r := releases.Get().(*driver.Release)
	*r = *g.releaseRequest()
	r.Keep = keep
	err := g.m.client().d.Release(g.m.client().hard, r)
	*r = driver.Release{}
	releases.Put(r)
	return err
}
