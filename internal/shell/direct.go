package shell

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// Readers, writers and holders of permits: locks of which a process may have several holds side by side. Each request
// goes to the engine by itself, and nothing passes on inside the process. Only the engine knows whose turn it is among
// readers and writers, and whether enough permits are left. It follows acquire.go in place of the line of
// internal/core/line.go.

// AttemptDirect is attempt for such a lock. It repeats only while another goroutine of the same owner gets in between,
// because then the request has to be another one. It is made beside that hold, and not on its own.
func AttemptDirect(ctx context.Context, m *core.Lock, o *core.Owner, try bool, at core.Call) (*core.Hold, error) {
	for {
		lease, beside, err := reenterDirect(ctx, m, o)
		if lease != nil || err != nil {
			return lease, err
		}
		if err := ctx.Err(); err != nil {
			return nil, Wrap("lock", m.Key(), err)
		}
		if err := ClientOf(m).CheckOwner(o); err != nil {
			return nil, err
		}
		since := 0
		if r := m.Terms.Share.Resizes; r != nil {
			since = r.Seen()
		}
		lease, err = takeDirect(ctx, m, o, beside, try, at)
		if next := resizedLock(ctx, m, since, try, err); next != nil {
			m = next
			continue
		}
		switch {
		// The wait ended because the owner got in: again, beside that.
		case errors.Is(err, core.ErrAgain):
		// The try was refused, perhaps because of the owner itself: again, beside that hold.
		case err != nil && errors.Is(err, driver.ErrHeld) && hasGotIn(m, o, beside):
		default:
			return lease, err
		}
	}
}

// hasGotIn reports whether o has a hold that it did not have when it asked, and beside which it may ask again.
func hasGotIn(m *core.Lock, o *core.Owner, beside *core.EngineHold) bool {
	c := ClientOf(m)
	if o == nil || o.Named || beside != nil || m.Terms.Share.Of == nil {
		return false
	}
	c.Lock()
	defer c.Unlock()
	return c.LiveEngineHold(o, m.Key()) != nil
}

// takeDirect asks the engine, beside a hold of o's if beside is not nil.
func takeDirect(
	ctx context.Context,
	m *core.Lock,
	o *core.Owner,
	beside *core.EngineHold,
	try bool,
	at core.Call,
) (*core.Hold, error) {
	c := ClientOf(m)
	if c.Traits.Local && beside == nil { // the lock is nearly always free, and a try costs the least
		c.Lock()
		lease, err := tryLocal(ctx, m, o, !try, at)
		if try || !errors.Is(err, driver.ErrHeld) {
			return lease, err
		}
	}
	w := NewWaiter(m, o, at)
	w.Alongside = beside
	return c.AskAlone(ctx, w, try)
}

// reenterDirect returns another hold if o has one of the same mode already, or else the grant of another mode beside
// which to ask. It returns neither if o holds nothing, if the engine re-enters o by its name, or for permits, of which
// each call takes its own.
func reenterDirect(ctx context.Context, m *core.Lock, o *core.Owner) (*core.Hold, *core.EngineHold, error) {
	c := ClientOf(m)
	if o == nil || m.Terms.Share.Of == nil {
		return nil, nil, nil
	}
	held := c.heldBy(o, m.Key())
	if held == nil {
		return nil, nil, nil
	}
	if err := EndOf(held); errors.Is(err, driver.ErrLost) {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, Wrap("lock", m.Key(), err)
	}
	if o.Named { // the engine itself re-enters named owners
		return nil, nil, nil
	}
	has := bestAlongside(m, o)
	switch {
	// Another goroutine of the owner has unlocked it meanwhile.
	case has == nil:
		return nil, nil, nil
	// The write would wait for its own owner's read, and two readers that both want to write would wait for each other.
	case m.Terms.Share.Mode == driver.Exclusive && has.Lock.Terms.Share.Mode == driver.Shared:
		return nil, nil, Wrap("lock", m.Key(), core.ErrReader)
	// The same mode shares the grant. Where the engine cannot grant beside a hold, a read shares the grant of its
	// owner's write. share returns nothing if the hold was unlocked meanwhile.
	case has.Lock.Terms.Share.Mode == m.Terms.Share.Mode || c.Convert == nil:
		lease, err := c.reenterGrant(ctx, has, o, m)
		return lease, nil, err
	}
	return nil, has, nil
}

// bestAlongside returns the grant of o's that a request of m's mode can share, or else the strongest one that o has.
func bestAlongside(m *core.Lock, o *core.Owner) (best *core.EngineHold) {
	c := ClientOf(m)
	c.Lock()
	defer c.Unlock()
	for _, l := range o.On(m.Key()) {
		if ClientOf(l.Lock) != c || l.Ended() != nil {
			continue
		}
		switch g := l.Engine; {
		case g.Lock.Terms.Share.Mode == m.Terms.Share.Mode:
			return g
		case best == nil || rank(g.Lock.Terms.Share.Mode) > rank(best.Lock.Terms.Share.Mode):
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
