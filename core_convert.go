package interlock

import (
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
)

// mayConvert says why l cannot be turned into that mode, or nil. The order matters: the end of the hold is told before
// what would be wrong with a live one. The caller holds Client.mu.
func (l *Lease) mayConvert(mode driver.Mode) error {
	c := l.m.c
	l.check(c.now())
	switch is := l.mode(); {
	case l.m.p.share.of == nil:
		return fmt.Errorf("only a hold of an RWMutex has modes: %w", ErrUnsupported)
	case l.ended() != nil:
		return l.ended()
	case c.closed:
		return ErrClosed
	case l.listeners != nil && l.listeners.conversion != nil:
		return fmt.Errorf("it is being done already: %w", ErrConflict)
	case mode == driver.Exclusive && is == driver.Exclusive:
		return fmt.Errorf("the hold writes already: %w", ErrConflict)
	case mode == driver.Exclusive && is == driver.Shared:
		return errReader
	case mode == driver.Shared && is != driver.Exclusive:
		return fmt.Errorf("the hold reads already: %w", ErrConflict)
	case !c.converts:
		return c.noConversion()
	}
	return nil
}

// noConversion says why this engine converts nothing.
func (c *core) noConversion() error {
	reason, lacks := c.traits.Lacking(driver.Conversion)
	if !lacks {
		reason = "a hold cannot be turned into another mode"
	}
	return unsupported(c.traits, reason)
}

// mode returns what l may do now: the mode of its grant, which conversions change. The caller holds Client.mu.
func (l *Lease) mode() driver.Mode {
	// Such a hold may be on the grant of a write, where the engine cannot convert; see reenterDirect.
	if l.m.p.share.mode == driver.Shared {
		return driver.Shared
	}
	return l.g.m.p.share.mode
}

// reads reports whether l is a reader's hold, plain or upgradeable. The caller holds Client.mu.
func (l *Lease) reads() bool { return l.m.p.share.of != nil && l.mode() != driver.Exclusive }

// convertTo moves l to g, which was granted beside what it has. It returns what nobody holds any more and must be
// released, or nil. The caller holds Client.mu.
func (l *Lease) convertTo(g *grant) (left *pendingRelease) {
	had := l.g
	if g.m.p.share.mode == driver.Exclusive {
		read := &Lease{
			m: had.m, owner: l.owner, g: had, pass: l.pass, since: l.since, end: l.end, inner: true,
			upgradePair: l,
		}
		l.upgradePair = read
		l.moveTo(g)
		had.holds.add(ofGrant, read)
		had.TakeToken(&g.Grant)
		return nil
	}
	l.moveTo(g)
	return l.leaves(had)
}

// goBack moves l, which was upgraded, back to its upgradeable read. It returns what nobody holds any more and must be
// released, or nil. The caller holds Client.mu.
func (l *Lease) goBack() (left *pendingRelease) {
	had, read := l.g, l.splitPair()
	read.g.holds.remove(ofGrant, read)
	l.moveTo(read.g)
	return l.leaves(had)
}

// moveTo makes l a hold on g instead of the grant that it was on. Its MinHold moves along, because it is the lock that
// must stay closed and not the mode. The caller holds Client.mu.
func (l *Lease) moveTo(g *grant) {
	c := l.m.c
	l.g.holds.remove(ofGrant, l)
	l.g, l.pass, l.local = g, g.Pass, false
	g.last = nil
	g.holds.add(ofGrant, l)
	if p := l.m.p; p.MinHold > 0 {
		g.keepClosed(l.since.Plus(p.MinHold), l)
	}
	c.reschedule(g)
}

// leaves deals with had, the grant on which l was before a downgrade. It returns nil as long as another hold is on had,
// and else the release to await. A MinHold on had, also one of a hold that has ended, goes on with what l has now. A
// LockDelay stays with had, which is closed to readers too until it is over. The caller holds Client.mu.
func (l *Lease) leaves(had *grant) (left *pendingRelease) {
	c := l.m.c
	r, now := c.cooldowns[had], c.now()
	w := &pendingRelease{l: &Lease{m: had.m, g: had, owner: l.owner}, until: had.deadline()}
	if !c.dropIfUnheld(had) {
		return nil
	}
	if r != nil && r.until > now {
		l.g.keepClosed(r.until, r.by)
		w.keep = max(0, r.delay.Since(now))
	}
	return w
}

// splitPair takes the pair of an upgraded hold apart and returns the inner lease. Each can then end without the other.
// The caller holds Client.mu.
func (l *Lease) splitPair() *Lease {
	inner := l.upgradePair
	l.upgradePair, inner.upgradePair = nil, nil
	return inner
}

// splitLostPair takes apart the pair to which l belongs, because l is being lost. It returns the user's hold, the inner
// one, and the grant on which l was not. The caller vacates that one when both holds have ended. The caller holds
// Client.mu.
func (l *Lease) splitLostPair() (outer, inner *Lease, other *grant) {
	if l.inner {
		outer = l.upgradePair
		return outer, outer.splitPair(), outer.g
	}
	inner = l.splitPair()
	return l, inner, inner.g
}

// vacate releases g, on which the lost pair rested too, if nobody holds it any more. The release begins when the
// holders' contexts have been cancelled. The caller holds Client.mu.
func (c *core) vacate(g *grant, lost *Lease) {
	g.delay(lost, c.now())
	// Read before dropIfUnheld, which drops g and its cooldown.
	keep := g.keep()
	if c.dropIfUnheld(g) {
		give := g.releaseRequest()
		give.Keep = keep
		c.settle(g.m, give)
		c.background.Done() // settle has counted it too
	}
}

// dropIfUnheld ends g in this process if nobody holds it any more. It reports whether the caller is to release g, which
// counts as background from then on. The caller holds Client.mu.
func (c *core) dropIfUnheld(g *grant) bool {
	switch {
	case g.Phase == grants.Gone:
		return false
	case g.holds.first != nil:
		c.reschedule(g)
		return false
	case g.Phase == grants.Abandoned:
		g.leave()
		return false
	}
	g.drop()
	c.background.Add(1)
	return true
}

// grants returns what l rests on: one grant, or the two of an upgrade pair. The caller holds Client.mu.
func (l *Lease) grants() []*grant {
	if l.upgradePair != nil {
		return []*grant{l.g, l.upgradePair.g}
	}
	return []*grant{l.g}
}
