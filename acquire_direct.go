package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// Readers, writers and holders of permits: locks of which a process may have several holds side by side. Each request
// goes to the engine by itself, and nothing passes on inside the process. Only the engine knows whose turn it is among
// readers and writers, and whether enough permits are left. It follows acquire.go in place of the line of
// core_line.go.

// attemptDirect is attempt for such a lock. It repeats only while another goroutine of the same owner gets in between,
// because then the request has to be another one. It is made beside that hold, and not on its own.
func (m *lock) attemptDirect(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	for {
		lease, beside, err := m.reenterDirect(ctx, o)
		if lease != nil || err != nil {
			return lease, err
		}
		if err := ctx.Err(); err != nil {
			return nil, wrap("lock", m.key(), err)
		}
		if err := m.client().checkOwner(o); err != nil {
			return nil, err
		}
		since := 0
		if r := m.p.share.resizes; r != nil {
			since = r.seen()
		}
		lease, err = m.takeDirect(ctx, o, beside, try, at)
		if next := m.resized(ctx, since, try, err); next != nil {
			m = next
			continue
		}
		switch {
		// The wait ended because the owner got in: again, beside that.
		case errors.Is(err, errAgain):
		// The try was refused, perhaps because of the owner itself: again, beside that hold.
		case err != nil && errors.Is(err, ErrHeld) && m.hasGotIn(o, beside):
		default:
			return lease, err
		}
	}
}

// hasGotIn reports whether o has a hold that it did not have when it asked, and beside which it may ask again.
func (m *lock) hasGotIn(o *owner, beside *grant) bool {
	if o == nil || o.named || beside != nil || m.p.share.of == nil {
		return false
	}
	m.client().lock()
	defer m.client().unlock()
	return m.client().liveGrant(o, m.key()) != nil
}

// takeDirect asks the engine, beside a hold of o's if beside is not nil.
func (m *lock) takeDirect(ctx context.Context, o *owner, beside *grant, try bool, at call) (*Lease, error) {
	c := m.client()
	if c.traits.Local && beside == nil { // the lock is nearly always free, and a try costs the least
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

// reenterDirect returns another hold if o has one of the same mode already, or else the grant of another mode beside
// which to ask. It returns neither if o holds nothing, if the engine re-enters o by its name, or for permits, of which
// each call takes its own.
func (m *lock) reenterDirect(ctx context.Context, o *owner) (*Lease, *grant, error) {
	if o == nil || m.p.share.of == nil {
		return nil, nil, nil
	}
	held := m.client().heldBy(o, m.key())
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
	// Another goroutine of the owner has unlocked it meanwhile.
	case has == nil:
		return nil, nil, nil
	// The write would wait for its own owner's read, and two readers that both want to write would wait for each other.
	case m.p.share.mode == driver.Exclusive && has.m.p.share.mode == driver.Shared:
		return nil, nil, wrap("lock", m.key(), errReader)
	// The same mode shares the grant. Where the engine cannot grant beside a hold, a read shares the grant of its
	// owner's write. share returns nothing if the hold was unlocked meanwhile.
	case has.m.p.share.mode == m.p.share.mode || m.client().convert == nil:
		lease, err := m.client().reenterGrant(ctx, has, o, m)
		return lease, nil, err
	}
	return nil, has, nil
}

// best returns the grant of o's that a request of m's mode can share, or else the strongest one that o has.
func (m *lock) best(o *owner) (best *grant) {
	c := m.client()
	c.lock()
	defer c.unlock()
	for _, l := range o.on(m.key()) {
		if l.m.client() != c || l.ended() != nil {
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

// rank orders modes by how much they allow.
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
