package interlock

// retentionNews is what the Observer knows of a lock that is retained. Guarded by Client.mu.
type retentionNews struct {
	c          *Client
	e          Event
	told, over bool
}

// tellRetained tells the Observer that g is retained from now on. It returns nil if nobody listens. The caller holds
// Client.mu.
func (g *grant) tellRetained() *retentionNews {
	c := g.m.c
	if o := c.opts.Observer; o.Retained == nil && o.RetentionEnded == nil {
		return nil
	}
	n := &retentionNews{c: c, e: g.last.event()}
	c.afterUnlock(func() {
		c.tell("Retained", c.opts.Observer.Retained, n.e)
		c.lock()
		defer c.unlock()
		n.told = true
		if n.over { // another goroutine was quicker
			n.tellEnd()
		}
	})
	return n
}

// end tells the Observer that it is over, once it has been told of the beginning. The caller holds Client.mu.
func (n *retentionNews) end() {
	if n == nil {
		return
	}
	n.over = true
	if n.told {
		n.tellEnd()
	}
}

func (n *retentionNews) tellEnd() {
	if ended := n.c.opts.Observer.RetentionEnded; ended != nil {
		e := n.e
		e.Waited, e.Held, e.Local = 0, 0, false
		n.c.tellLater("RetentionEnded", ended, e)
	}
}

// tellRecalled tells the Observer, once, that another client wants g. The engine may say so before anybody here has got
// g; then there is nothing to tell of yet. The caller holds Client.mu.
func (g *grant) tellRecalled() {
	recalled := g.m.c.opts.Observer.Recalled
	if recalled == nil || g.recallTold || g.phase == gone || g.holder() == nil {
		return
	}
	g.recallTold = true
	g.m.c.tellLater("Recalled", recalled, g.holder().event())
}
