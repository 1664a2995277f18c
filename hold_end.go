package interlock

// How a hold ends, and who is told: its contexts, channels and waits here, at once; the Observer and the log once
// Client.mu has been given up. lease.go has what its owner sees; core_end.go and release.go decide when.

// lost tells that l was lost. The caller holds Client.mu.
func (c *Client) lost(l *Lease, lost *LostError) {
	// Read under Client.mu; the callback below runs after it.
	told, held := l.announced == announcedStart, l.end.Since(l.since)
	c.afterUnlock(func() {
		if told {
			c.tellLost(l.eventNow(), lost)
		}
		attrs := []any{
			"kind", string(l.Kind()), "lock", l.Name(), "class", l.m.p.class, "engine", c.traits.Engine, "token",
			lost.Token,
			"owner", l.owner.id, "held", held, "reason", string(lost.Reason),
		}
		if lost.Cause != nil {
			attrs = append(attrs, "err", lost.Cause)
		}
		c.opts.Logger.Error("interlock: lock lost", attrs...)
	})
}

// adopted is tellAdopted for the core. The caller holds Client.mu.
func (c *Client) adopted(l *Lease) { l.tellAdopted() }

// tellAdopted tells that the hold has gone on to another client. Its owner no longer has it and need not unlock it. The
// caller holds Client.mu.
func (l *Lease) tellAdopted() {
	c := l.m.client()
	c.afterUnlock(func() {
		l.owner.remove(l)
		l.tellReleased(nil)
		c.opts.Logger.Info("interlock: another client has adopted the lock", "lock", l.Name(), "engine",
			c.traits.Engine, "token", l.Token(), "owner", l.owner.id)
	})
}

// eventNow is event for a caller that does not hold Client.mu.
func (l *Lease) eventNow() Event {
	l.m.client().lock()
	defer l.m.client().unlock()
	return l.event()
}

// event describes the hold to an Observer: Held is the time until now, or until the hold ended. The caller holds
// Client.mu.
func (l *Lease) event() Event {
	until := l.m.client().now()
	if l.ended() != nil {
		until = l.end
	}
	return Event{
		Kind: l.Kind(), Name: l.Name(), Class: l.m.p.class, Engine: l.m.client().traits.Engine,
		Hold: l.id(), Owner: l.owner.id, Token: l.token(),
		Waited: l.waited, Held: until.Since(l.since), Local: l.local,
		c: l.m.client(),
	}
}
