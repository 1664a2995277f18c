package interlock

import "github.com/interlock-go/interlock/internal/grants"

// An upgraded hold is an upgrade pair of two leases. The user's lease is on the write. The inner one keeps the
// upgradeable read below it for a downgrade. They are made in hold_convert.go, and end together.

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
