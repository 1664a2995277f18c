package interlock

// An upgraded hold is an upgrade pair: the user's lease, which is on the write, and the inner one, which keeps the
// upgradeable read below it for a downgrade. Both end together. See hold_convert.go.

// splitPair takes the pair of an upgraded hold apart, and returns the inner one. The caller holds Client.mu.
func (l *Lease) splitPair() *Lease {
	inner := l.upgradePair
	l.upgradePair, inner.upgradePair = nil, nil
	return inner
}

// splitLostPair takes the pair apart of which l is one: it is lost. It returns the user's hold, the inner one, and the
// grant of the two on which l was not: that is to be vacated when they have ended. The caller holds Client.mu.
func (l *Lease) splitLostPair() (outer, inner *Lease, other *grant) {
	if l.inner {
		outer = l.upgradePair
		return outer, outer.splitPair(), outer.g
	}
	inner = l.splitPair()
	return l, inner, inner.g
}

// vacate gives back g, on which lost rested too, if nobody holds it any more, once the contexts of the holders have
// been cancelled. The caller holds Client.mu.
func (c *Client) vacate(g *grant, lost *Lease) {
	g.delay(lost, c.now())
	keep := g.keep()
	if c.vacated(g) {
		give := g.release()
		give.Keep = keep
		c.settleAfterUnlock(g.m, give)
	}
}

// vacated ends g in this process if nobody holds it any more, and reports whether it is to be given back, which counts
// as background from now on. The caller holds Client.mu.
func (c *Client) vacated(g *grant) bool {
	switch {
	case g.phase == gone:
		return false
	case g.holds.first != nil:
		c.reschedule(g)
		return false
	case g.phase == abandoned:
		g.leave()
		return false
	}
	g.drop()
	c.background.Add(1)
	return true
}

// grants are what l rests on. The caller holds Client.mu.
func (l *Lease) grants() []*grant {
	if l.upgradePair != nil {
		return []*grant{l.g, l.upgradePair.g}
	}
	return []*grant{l.g}
}
