package interlock

// An upgraded hold is a pair: the user's lease, which is on the write, and the inner one, which keeps the upgradeable read
// below it for a downgrade. Both end together. See hold_convert.go.

// part takes the pair of an upgraded hold apart, and returns the inner one. The caller holds Client.mu.
func (l *Lease) part() *Lease {
	inner := l.pair
	l.pair, inner.pair = nil, nil
	return inner
}

// whole takes the pair apart of which l is one: it is lost. It returns the user's hold, the inner one, and the grant of the two
// on which l was not: that is to be vacated when they have ended. The caller holds Client.mu.
func (l *Lease) whole() (outer, inner *Lease, other *grant) {
	if l.inner {
		outer = l.pair
		return outer, outer.part(), outer.g
	}
	inner = l.part()
	return l, inner, inner.g
}

// vacate gives back g, on which lost rested too, if nobody holds it any more, once the contexts of the holders have been
// cancelled. The caller holds Client.mu.
func (c *Client) vacate(g *grant, lost *Lease) {
	g.delay(lost, c.now())
	keep := g.keep()
	if c.vacated(g) {
		give := g.release()
		give.Keep = keep
		c.settleAfter(give)
	}
}

// vacated ends g in this process if nobody holds it any more, and reports whether it is to be given back, which counts as
// background from now on. The caller holds Client.mu.
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
	if l.pair != nil {
		return []*grant{l.g, l.pair.g}
	}
	return []*grant{l.g}
}

// trusted is the end of the trust in all that l rests on. The caller holds Client.mu.
func (l *Lease) trusted() instant {
	if l.pair != nil {
		return min(l.g.deadline(), l.pair.g.deadline())
	}
	return l.g.deadline()
}
