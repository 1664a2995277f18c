package shell

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// A try on a local engine (memory, files). The engine answers at once, so the call is made in the caller's goroutine.
// Nothing of what a wait needs is made for it: no waiter, fetch, channel or context. Most locks of such an engine are
// taken in this way, and the core's own work is a large part of what they cost. A refusal goes on to acquire_join.go.

// tryLocal asks a local engine for m, once. waits says that the caller will wait after a refusal, so that the engine
// need not find out who holds the lock. The caller holds Machine.Mu, which tryLocal gives up.
func tryLocal(ctx context.Context, m *core.Lock, o *core.Owner, waits bool, at core.Call) (*core.Hold, error) {
	c := ClientOfLock(m)
	if c.Machine.Closed {
		c.Unlock()
		return nil, Wrap("lock", m.Key(), driver.ErrClosed)
	}
	c.Machine.Background.Add(1) // under Machine.Mu, so that Close waits for what is under way
	defer c.Machine.Background.Done()
	c.Unlock()
	g, l := newLocalHold(m, o)
	// The driver is called without Machine.Mu, as everywhere: files have to be read.
	answer, err := askLocally(g, l.Owner, waits)
	c.Lock()
	now := c.Machine.Now()
	switch gone := errors.Is(err, driver.ErrLost); {
	case gone || err == nil && (g.Phase == grants.Revoked || c.Machine.ExpiredOnArrival(answer, now)):
		return tryAgain(ctx, m, l, g, gone, at)
	case err != nil:
		// The lock may have been taken although the engine reported an error.
		if !driver.IsDefinite(err) {
			g.ReleaseInBackground(true)
		}
		c.Unlock()
		return nil, Explain(m.Key(), err)
	// Close has ended everything that it found, and this hold came after that.
	case c.Machine.Closed:
		g.ReleaseInBackground(false)
		c.Unlock()
		return nil, Wrap("lock", m.Key(), driver.ErrClosed)
	}
	old := c.Machine.Passing(m)
	g.Accept(answer, now)
	// With an older grant of this lock in the process only one of the two may serve the line.
	g.Alone = l.Owner.Named || old != nil
	g.AddHold(l, at.Start, now, false)
	g.AddSameOwner()
	c.Unlock()
	return l, nil
}

// tryAgain asks once more after a grant that was over before it could be used. An operator broke it, or this process
// stood still for longer than the lease. gone says that the engine reported that itself. The caller holds Machine.Mu,
// which tryAgain gives up.
func tryAgain(ctx context.Context, m *core.Lock, l *core.Hold, g *core.EngineHold, gone bool, at core.Call) (*core.Hold, error) {
	g.ReleaseInBackground(gone)
	ClientOfLock(m).Unlock()
	return ClientOfLock(m).AskAlone(ctx, &core.Waiter{Hold: l, Call: at}, true)
}

// newLocalHold returns a grant that must be asked for and its first hold, for o or for a new owner. All three are one
// allocation: most grants see no other hold, so they live equally long.
func newLocalHold(m *core.Lock, o *core.Owner) (*core.EngineHold, *core.Hold) {
	first := &struct {
		engine core.EngineHold
		lease  core.Lease
		owner  core.Owner
	}{}
	g := &first.engine
	*g = *m.NewEngineHold(ClientOfLock(m).NewID())
	if o == nil {
		first.owner.ID = g.ID // one string for both
		o = &first.owner
	}
	return g, first.lease.Begin(m, o)
}

var (
	// requests and releases keep the structs with which a local engine is asked. It keeps no pointer to them once it
	// has answered, so each can be used again at once.
	requests = sync.Pool{New: func() any { return new(driver.Request) }}
	releases = sync.Pool{New: func() any { return new(driver.Release) }}
)

// askLocally tries to get g for o; waits is as in tryLocal. Only the client's own end cancels it: a local engine answers at
// once.
func askLocally(g *core.EngineHold, o *core.Owner, waits bool) (driver.Grant, error) {
	r := requests.Get().(*driver.Request)
	*r = DriverRequest(g.Lock, g.ID, o)
	r.Try, r.SkipHolder, r.Lost = true, waits, LossOf(g)
	askForRecalls(g, r)
	answer, err := ClientOfLock(g.Lock).Driver.Acquire(ClientOfLock(g.Lock).renewCtx, r)
	*r = driver.Request{}
	requests.Put(r)
	return answer, err
}

// releaseLocally gives g back to a local engine, which keeps the lock closed for keep.
func releaseLocally(g *core.EngineHold, keep time.Duration) error {
	r := releases.Get().(*driver.Release)
	*r = *g.ReleaseRequest()
	r.Keep = keep
	err := ClientOfLock(g.Lock).Driver.Release(ClientOfLock(g.Lock).releaseCtx, r)
	*r = driver.Release{}
	releases.Put(r)
	return err
}
