package interlock

import "github.com/interlock-go/interlock/internal/grants"
import "github.com/interlock-go/interlock/internal/trust"

// How a hold ends, and who is told: its contexts, channels and waits here, at once; the Observer and the log once
// Client.mu has been given up. lease.go has what its owner sees; hold_expire.go and release.go decide when.

// release ends the hold because its owner, or Close, gives it up. It sends nothing. The caller holds Client.mu.
func (l *Lease) release(now trust.Instant) {
	l.released = true
	l.finish(now)
}

// lose ends the hold as a loss. Either hold of an upgrade pair ends both. cause may be nil. The caller holds Client.mu.
func (l *Lease) lose(reason LostReason, cause error) {
	c, end := l.m.c, l.lasted()
	var inner *Lease
	var other *grant
	if l.upgradePair != nil {
		l, inner, other = l.splitLostPair()
	}
	// Something that nobody can stop is under way. So nobody gives the lock back, neither here nor when the last hold
	// beside this one ends.
	if l.pending > 0 {
		l.g.Phase = grants.Abandoned
	}
	lost := l.lostError(reason, cause)
	// The owner has given the hold up for a condition, and the engine is being asked. That is no loss; Cond.Wait
	// reports what became of it.
	if l.listeners != nil && l.listeners.condWait != nil {
		l.listeners.condWait.overtaken(lost)
		return
	}
	if inner != nil {
		inner.loss = lost // for whoever is asking for more time on its grant
		inner.finish(end)
	}
	// loss first: finish tells the listeners how the hold has ended.
	l.loss = lost
	l.finish(end)
	if other != nil {
		c.vacate(other, l)
	}
	// Another client has adopted the hold, so nothing was lost, and the Observer hears of a release.
	if reason == LostAdopted {
		c.shell.adopted(l)
		return
	}
	c.shell.lost(l, lost)
}

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

// lasted returns until when a hold that is lost now was trusted. That is until its time was over, however late that is
// noticed, or until now if the engine reports the loss earlier. The caller holds Client.mu.
func (l *Lease) lasted() trust.Instant { return min(l.m.c.now(), l.end, l.trusted()) }

// lostError returns the error that says that l was lost. The caller holds Client.mu.
func (l *Lease) lostError(reason LostReason, cause error) *LostError {
	key := l.m.key()
	return &LostError{Kind: key.Kind, Name: key.Name, Token: l.token(), Reason: reason, Cause: cause}
}

// finish ends the hold as of the instant end: it wakes all that wait for that, and takes the hold off its grant.
// Foreign code, such as the cancellation of contexts, runs after Client.mu is given up. The caller holds Client.mu.
func (l *Lease) finish(end trust.Instant) {
	c := l.m.c
	l.end = end
	// Acquired has not returned yet. Whoever calls it tells the end afterwards, so that the Observer never hears of an
	// end before its beginning.
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
	// An Upgrade or Downgrade that waits has nothing left to convert.
	if w := l.listeners.conversion; w != nil && !w.answered {
		w.leave()
		w.answer(l.ended())
	}
	if len(l.listeners.contexts) > 0 {
		c.emit(effect{verb: cancelContexts, contexts: l.listeners.contexts, cause: l.ended()})
		l.listeners.contexts = nil
	}
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
