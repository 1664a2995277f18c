package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Readers, writers and holders of permits: locks of which a process may have several holds side by side. Each request
// goes to the engine by itself, and nothing passes on inside the process: whose turn it is among readers and writers,
// and whether the permits that are left are enough, only the engine knows.

// errAgain ends the wait of an owner who got in by another request meanwhile: it asks again, beside that.
var errAgain = errors.New("the owner has got in meanwhile")

// attemptDirect is attempt for such a lock.
func (m *Mutex) attemptDirect(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	for {
		lease, beside, err := m.reenterDirect(ctx, o)
		if lease != nil || err != nil {
			return lease, err
		}
		if err := ctx.Err(); err != nil {
			return nil, wrap("lock", m.key(), err)
		}
		if err := m.c.checkOwner(o); err != nil {
			return nil, err
		}
		lease, err = m.takeDirect(ctx, o, beside, try, at)
		switch {
		case errors.Is(err, errAgain):
		case err != nil && errors.Is(err, ErrHeld) && m.hasGotIn(o, beside):
		default:
			return lease, err
		}
	}
}

// mayReenter reports whether w would wait for its own owner if that had a hold of the lock.
func (w *waiter) mayReenter() bool {
	return w.lease.m.p.share.of != nil && w.beside == nil && !w.lease.owner.named
}

// hasGotIn reports whether o has a hold now which it had not when it asked, and beside which it may ask again.
func (m *Mutex) hasGotIn(o *owner, beside *grant) bool {
	if o == nil || o.named || beside != nil || m.p.share.of == nil {
		return false
	}
	m.c.lock()
	defer m.c.unlock()
	return m.c.liveGrant(o, m.key()) != nil
}

// takeDirect asks the engine, beside a hold of o's if that is not nil.
func (m *Mutex) takeDirect(ctx context.Context, o *owner, beside *grant, try bool, at call) (*Lease, error) {
	c := m.c
	if c.traits.Local && beside == nil { // nearly always free, and then it costs the least
		c.lock()
		lease, err := m.tryLocal(ctx, o, !try, at)
		if try || !errors.Is(err, ErrHeld) {
			return lease, err
		}
	}
	w := m.newWaiter(o, at)
	w.beside = beside
	return c.askAlone(ctx, w, try)
}

// reenterDirect returns another hold if o has one of this mode already, or what o has of another mode, beside which to
// ask. Permits are taken each time.
func (m *Mutex) reenterDirect(ctx context.Context, o *owner) (*Lease, *grant, error) {
	if o == nil || m.p.share.of == nil {
		return nil, nil, nil
	}
	held := m.c.heldBy(o, m.key())
	if held == nil {
		return nil, nil, nil
	}
	if err := held.Err(); errors.Is(err, ErrLost) {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, wrap("lock", m.key(), err)
	}
	if o.named { // the engine itself re-enters named owners
		return nil, nil, nil
	}
	has := m.best(o)
	switch {
	case has == nil: // it has been unlocked by another goroutine meanwhile
		return nil, nil, nil
	case m.p.share.mode == driver.Exclusive && has.m.p.share.mode == driver.Shared:
		return nil, nil, wrap("lock", m.key(), errReader)
	case has.m.p.share.mode == m.p.share.mode || m.c.convert == nil:
		lease, err := m.c.share(ctx, has, o, m) // nothing, if it was unlocked meanwhile
		return lease, nil, err
	}
	return nil, has, nil
}

var errReader = fmt.Errorf("it only reads, and would wait for itself; take UpgradeableRLock to upgrade: %w",
	ErrDeadlock)

// best returns the grant of o's which a request of m's mode can share, or else the strongest that it has.
func (m *Mutex) best(o *owner) (best *grant) {
	c := m.c
	c.lock()
	defer c.unlock()
	for _, l := range o.on(m.key()) {
		if l.m.c != c || l.ended() != nil {
			continue
		}
		switch g := l.g; {
		case g.m.p.share.mode == m.p.share.mode:
			return g
		case best == nil || rank(g.m.p.share.mode) > rank(best.m.p.share.mode):
			best = g
		}
	}
	return best
}

// rank orders modes by what they allow.
func rank(mode driver.Mode) int {
	switch mode {
	case driver.Exclusive:
		return 2
	case driver.Upgradeable:
		return 1
	default:
		return 0
	}
}

// admitDirect has the other direct requests of o, who holds g now, ask again beside it: on their own they would wait
// for it. The engine does so itself for named owners. The caller holds Client.mu.
func (g *grant) admitDirect(o *owner) {
	if g.m.p.share.of == nil { // permits are nobody's twice
		return
	}
	if o.several() {
		g.spreadToken(o)
	}
	if o.named || o.waits.Load() == 0 {
		return
	}
	for w := range g.m.c.alone {
		if w.lease.owner == o && w.lease.m.key() == g.m.key() && w.beside == nil {
			w.leave()
			w.answer(errAgain)
		}
	}
}

// spreadToken gives the token of g, if it is an upgrade, to all that o has of this lock: a fence that has seen the
// write would refuse what reads with an older one. The caller holds Client.mu.
func (g *grant) spreadToken(o *owner) {
	for _, l := range o.on(g.m.key()) {
		if l.m.c != g.m.c || l.ended() != nil {
			continue
		}
		if l.g.takeToken(g); l.upgradePair != nil {
			l.upgradePair.g.takeToken(g)
		}
	}
}

// takeToken takes over the token of a later grant to the same owner. The caller holds Client.mu.
func (g *grant) takeToken(from *grant) {
	if g.token < from.token {
		g.token, g.own = from.token, &engineSide{from.nonce(), g.session()}
	}
}
