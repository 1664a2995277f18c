package interlock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A try on a local engine, where it waits for nobody: it is made and answered in the caller's goroutine, so none of
// what a wait needs (waiter, fetch, channel, context) is made for it. That is how most locks of such an engine are
// taken, and the core's own work is a large part of what they cost.

// tryLocal asks a local engine for m, once. waits says that the caller waits if it is refused, so that who is in the
// way does not matter yet. The caller holds Client.mu, which tryLocal gives up.
func (m *Mutex) tryLocal(ctx context.Context, o *owner, waits bool, at call) (*Lease, error) {
	c := m.c
	if c.closed {
		c.unlock()
		return nil, wrap("lock", m.key(), ErrClosed)
	}
	c.background.Add(1) // under Client.mu, so that Close waits for what is under way
	defer c.background.Done()
	c.unlock()
	g, l := m.newHold(o)
	answer, err := g.ask(l.owner, waits)
	c.lock()
	now := c.now()
	switch gone := errors.Is(err, ErrLost); {
	case gone || err == nil && (g.phase == revoked || g.tooLate(answer, now)):
		return m.tryAgain(ctx, l, g, gone, at)
	case err != nil:
		if !driver.IsDefinite(err) {
			g.settle(true)
		}
		c.unlock()
		return nil, explain(m.key(), err)
	case c.closed:
		g.settle(false)
		c.unlock()
		return nil, wrap("lock", m.key(), ErrClosed)
	}
	old := c.passing(m)
	g.taken(answer, now)
	g.alone = l.owner.named || old != nil
	g.admit(l, at.start, now, false)
	g.admitOthers()
	c.unlock()
	return l, nil
}

// tryAgain asks once more after a hold that had ended before it could be taken in: an operator broke it, or this
// process stood still for longer than the lease. The caller holds Client.mu, which tryAgain gives up.
func (m *Mutex) tryAgain(ctx context.Context, l *Lease, g *grant, gone bool, at call) (*Lease, error) {
	g.settle(gone)
	m.c.unlock()
	return m.c.askAlone(ctx, &waiter{lease: l, call: at}, true)
}

// newHold returns a grant that is to be asked for and the first hold on it, for o or a new owner, in one piece of
// memory: most grants see no other hold.
func (m *Mutex) newHold(o *owner) (*grant, *Lease) {
	first := &struct {
		grant grant
		lease Lease
		owner owner
	}{}
	g, l := &first.grant, &first.lease
	l.self = l
	*g = grant{m: m, id: m.c.newID(), asked: m.p.lease, index: -1}
	l.m, l.owner = m, o
	if o == nil {
		first.owner.id = g.id // one string for both
		l.owner = &first.owner
	}
	return g, l
}

// requests and releases keep what a local engine is asked with: it has no use for that once it has answered.
var (
	requests = sync.Pool{New: func() any { return new(driver.Request) }}
	releases = sync.Pool{New: func() any { return new(driver.Release) }}
)

// ask tries to get g for o. waits says whether o waits if that is refused.
func (g *grant) ask(o *owner, waits bool) (driver.Grant, error) {
	r := requests.Get().(*driver.Request)
	*r = g.m.request(g.id, o)
	r.Try, r.SkipHolder, r.Lost = true, waits, g.lostByEngine
	g.tells(r)
	answer, err := g.m.c.d.Acquire(g.m.c.base, r)
	*r = driver.Request{}
	requests.Put(r)
	return answer, err
}

// releaseLocal gives g back to a local engine, which is to keep it closed for that long.
func (g *grant) releaseLocal(keep time.Duration) error {
	r := releases.Get().(*driver.Release)
	*r = *g.release()
	r.Keep = keep
	err := g.m.c.d.Release(g.m.c.hard, r)
	*r = driver.Release{}
	releases.Put(r)
	return err
}
