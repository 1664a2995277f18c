package interlock

// How a hold ends, and who is told of it.

// release ends the hold because its owner, or Close, gives it up. The caller holds Client.mu.
func (l *Lease) release(now instant) {
	l.released = true
	l.finish(now)
}

// lose ends the hold as a loss. The caller holds Client.mu.
func (l *Lease) lose(reason LostReason, cause error) {
	c, end := l.m.c, l.lasted()
	var inner *Lease
	var other *grant
	if l.upgradePair != nil {
		l, inner, other = l.splitLostPair()
	}
	if l.pending > 0 { // so that nobody gives it back, neither here nor when the last hold beside it ends
		l.g.phase = abandoned
	}
	lost := l.lostError(reason, cause)
	if l.listeners != nil && l.listeners.condWait != nil {
		l.listeners.condWait.overtaken(lost)
		return
	}
	if inner != nil {
		inner.loss = lost // for who is just asking for more time on its grant
		inner.finish(end)
	}
	l.loss = lost
	l.finish(end)
	if other != nil {
		c.vacate(other, l)
	}
	if reason == LostAdopted {
		l.tellAdopted()
		return
	}
	told, held := l.announced == announcedStart, l.end.since(l.since)
	c.afterUnlock(func() {
		if told {
			c.tellLost(l.eventNow(), lost)
		}
		attrs := []any{
			"kind", string(l.Kind()), "lock", l.Name(), "class", l.m.p.class, "engine", c.traits.Engine, "token",
			lost.Token,
			"owner", l.owner.id, "held", held, "reason", string(reason),
		}
		if cause != nil {
			attrs = append(attrs, "err", cause)
		}
		c.opts.Logger.Error("interlock: lock lost", attrs...)
	})
}

// tellAdopted tells that the hold has gone on to another client. Its owner has it no more, and need not unlock it. The
// caller holds Client.mu.
func (l *Lease) tellAdopted() {
	c := l.m.c
	c.afterUnlock(func() {
		l.owner.remove(l)
		l.tellReleased(nil)
		c.opts.Logger.Info("interlock: another client has adopted the lock", "lock", l.Name(), "engine",
			c.traits.Engine, "token", l.Token(), "owner", l.owner.id)
	})
}

// lasted is until when a hold that is lost now was trusted: until its time was over, however late that is noticed, or
// until now, if the engine says so before. The caller holds Client.mu.
func (l *Lease) lasted() instant { return min(l.m.c.now(), l.end, l.trusted()) }

// lostError says that l was lost.
func (l *Lease) lostError(reason LostReason, cause error) *LostError {
	return &LostError{Kind: l.Kind(), Name: l.Name(), Token: l.token(), Reason: reason, Cause: cause}
}

// finish ends the hold as of end: it tells whoever waits for that, and takes it out of its grant. What calls foreign
// code happens after Client.mu is given up. The caller holds Client.mu.
func (l *Lease) finish(end instant) {
	c := l.m.c
	l.end = end
	if l.announced == unannounced {
		l.announced = endOwed
	}
	l.g.holds.remove(ofGrant, l)
	if l.g.holds.first == nil {
		l.g.last = l
	}
	if l.listeners == nil {
		return
	}
	if l.listeners.lost != nil && l.loss != nil {
		close(l.listeners.lost)
	}
	if w := l.listeners.conversion; w != nil && !w.answered {
		w.leave()
		w.answer(l.ended())
	}
	if len(l.listeners.contexts) > 0 {
		c.cancelAfterUnlock(l.listeners.contexts, l.ended())
		l.listeners.contexts = nil
	}
}

// eventNow is event for who does not hold Client.mu.
func (l *Lease) eventNow() Event {
	l.m.c.lock()
	defer l.m.c.unlock()
	return l.event()
}

// event describes the hold to an Observer. The caller holds Client.mu.
func (l *Lease) event() Event {
	until := l.m.c.reading()
	if l.ended() != nil {
		until = l.end
	}
	return Event{
		Kind: l.Kind(), Name: l.Name(), Class: l.m.p.class, Engine: l.m.c.traits.Engine,
		Hold: l.id(), Owner: l.owner.id, Token: l.token(),
		Waited: l.waited, Held: until.since(l.since), Local: l.local,
		c: l.m.c,
	}
}
