package core

import (
	"fmt"
	"iter"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// MayConvert says why l cannot be turned into that mode, or nil. The order matters: the end of the hold is told before
// what would be wrong with a live one. The caller holds Machine.Mu.
func (l *Hold) MayConvert(mode driver.Mode) error {
	c := l.Lock.Core
	l.Check(c.Now())
	switch is := l.Mode(); {
	case l.Lock.Terms.Share.Of == nil:
		return fmt.Errorf("only a hold of an RWMutex has modes: %w", driver.ErrUnsupported)
	case l.Ended() != nil:
		return l.Ended()
	case c.Closed:
		return driver.ErrClosed
	case l.Listeners != nil && l.Listeners.Conversion != nil:
		return fmt.Errorf("it is being done already: %w", driver.ErrConflict)
	case mode == driver.Exclusive && is == driver.Exclusive:
		return fmt.Errorf("the hold writes already: %w", driver.ErrConflict)
	case mode == driver.Exclusive && is == driver.Shared:
		return ErrReader
	case mode == driver.Shared && is != driver.Exclusive:
		return fmt.Errorf("the hold reads already: %w", driver.ErrConflict)
	case !c.Converts:
		return c.NoConversion()
	}
	return nil
}

// NoConversion says why this engine converts nothing.
func (c *Machine) NoConversion() error {
	reason, lacks := c.Traits.Lacking(driver.Conversion)
	if !lacks {
		reason = "a hold cannot be turned into another mode"
	}
	return Unsupported(c.Traits, reason)
}

// Mode returns what l may do now: the mode of its grant, which conversions change. The caller holds Machine.Mu.
func (l *Hold) Mode() driver.Mode {
	// Such a hold may be on the grant of a write, where the engine cannot convert; see reenterDirect.
	if l.Lock.Terms.Share.Mode == driver.Shared {
		return driver.Shared
	}
	return l.Engine.Lock.Terms.Share.Mode
}

// Reads reports whether l is a reader's hold, plain or upgradeable. The caller holds Machine.Mu.
func (l *Hold) Reads() bool { return l.Lock.Terms.Share.Of != nil && l.Mode() != driver.Exclusive }

// convertTo moves l to g, which was granted beside what it has. It returns what nobody holds any more and must be
// released, or nil. The caller holds Machine.Mu.
func (l *Hold) convertTo(g *EngineHold) (left *PendingRelease) {
	had := l.Engine
	if g.Lock.Terms.Share.Mode == driver.Exclusive {
		l.upgradeTo(g)
		return nil
	}
	had.drop(l)
	g.Holds.add(OfGrant, l)
	l.moveTo(g)
	return l.leaves(had)
}

// upgradeTo moves l to the write g and keeps its upgradeable read, because a downgrade returns to that. The hold then
// rests on two grants and is lost with either. It stays where it was among the holds on the read, which other upgraded
// holds of the owner may keep too. A write is granted for one upgrade, so a pointer to that hold is enough, and no hold
// needs links for a third list. The caller holds Machine.Mu.
func (l *Hold) upgradeTo(g *EngineHold) {
	l.Below, g.Upgraded = l.Engine, l
	l.Below.TakeToken(&g.Grant)
	l.moveTo(g)
}

// GoBack moves l, which was upgraded, back to its upgradeable read. It returns what nobody holds any more and must be
// released, or nil. The caller holds Machine.Mu.
func (l *Hold) GoBack() (left *PendingRelease) {
	had, read := l.Engine, l.Below
	had.drop(l)
	l.Below = nil
	l.moveTo(read)
	return l.leaves(had)
}

// moveTo makes l rest on g, which counts it among its holds already. Its MinHold moves along, because it is the lock
// that must stay closed and not the mode. The caller holds Machine.Mu.
func (l *Hold) moveTo(g *EngineHold) {
	l.Engine, l.Pass, l.Local = g, g.Pass, false
	g.Last = nil
	if p := l.Lock.Terms; p.MinHold > 0 {
		g.closeUntil(l.Since.Plus(p.MinHold), l)
	}
	l.Lock.Core.Reschedule(g)
}

// leaves deals with had, the grant on which l was before a downgrade. It returns nil as long as another hold is on had,
// and else the release to await. A MinHold on had, also one of a hold that has ended, goes on with what l has now. A
// LockDelay stays with had, which is closed to readers too until it is over. The caller holds Machine.Mu.
func (l *Hold) leaves(had *EngineHold) (left *PendingRelease) {
	c := l.Lock.Core
	r, now := c.Cooldowns[had], c.Now()
	w := &PendingRelease{Engine: had, Lock: l.Lock, Until: had.TrustEnd()}
	if !c.dropIfUnheld(had) {
		return nil
	}
	if r != nil && r.Until > now {
		l.Engine.closeUntil(r.Until, r.by)
		w.Cooldown = max(0, r.delay.Since(now))
	}
	return w
}

// vacate releases g, on which the lost hold rested too, if nobody holds it any more. The release begins when the
// holders' contexts have been cancelled. The caller holds Machine.Mu.
func (c *Machine) vacate(g *EngineHold, lost *Hold) {
	g.delay(lost, c.Now())
	// Read before dropIfUnheld, which drops g and its cooldown.
	keep := g.EngineCooldown()
	if c.dropIfUnheld(g) {
		give := g.ReleaseRequest()
		give.Keep = keep
		c.ReleaseInBackground(g.Lock, give)
		c.Background.Done() // settle has counted it too
	}
}

// dropIfUnheld ends g in this process if nobody holds it any more. It reports whether the caller is to release g, which
// counts as background from then on. The caller holds Machine.Mu.
func (c *Machine) dropIfUnheld(g *EngineHold) bool {
	switch {
	case g.Phase == grants.Gone:
		return false
	case g.IsHeld():
		c.Reschedule(g)
		return false
	case g.Phase == grants.Abandoned:
		g.leaveToExpire()
		return false
	}
	g.Forget()
	c.Background.Add(1)
	return true
}

// EngineHolds yields what l rests on: one grant, or the write and the read of an upgraded hold. The caller holds
// Machine.Mu.
func (l *Hold) EngineHolds() iter.Seq[*EngineHold] {
	return func(yield func(*EngineHold) bool) {
		if yield(l.Engine) && l.Below != nil {
			yield(l.Below)
		}
	}
}
