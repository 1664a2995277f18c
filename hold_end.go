package interlock

import "github.com/interlock-go/interlock/internal/core"

// How a hold ends, and who is told: its contexts, channels and waits here, at once; the Observer and the log once
// Machine.Mu has been given up. lease.go has what its owner sees; internal/core/end.go and release.go decide when.

// lost tells that l was lost. The caller holds Machine.Mu.
func (c *Client) lost(l *core.Hold, lost *LostError) {
	// Read under Machine.Mu; the callback below runs after it.
	told, held := l.Announced == core.AnnouncedStart, l.End.Since(l.Since)
	c.core.AfterUnlock(func() {
		if told {
			c.tellLost(holdFactsNow(l), lost)
		}
		attrs := []any{
			"kind", string(l.Lock.Key().Kind), "lock", l.Lock.Key().Name, "class", l.Lock.Terms.Class, "engine", c.core.Traits.Engine, "token",
			lost.Token,
			"owner", l.Owner.ID, "held", held, "reason", string(lost.Reason),
		}
		if lost.Cause != nil {
			attrs = append(attrs, "err", lost.Cause)
		}
		c.opts.Logger.Error("interlock: lock lost", attrs...)
	})
}

// tellAdopted tells that the hold has gone on to another client. Its owner no longer has it and need not unlock it. The
// caller holds Machine.Mu.
func tellAdopted(l *core.Hold) {
	c := clientOfLock(l.Lock)
	c.core.AfterUnlock(func() {
		l.Owner.Remove(l)
		tellReleased(l, nil)
		c.opts.Logger.Info("interlock: another client has adopted the lock", "lock", l.Lock.Key().Name, "engine",
			c.core.Traits.Engine, "token", tokenOf(l), "owner", l.Owner.ID)
	})
}

// holdFactsNow is event for a caller that does not hold Machine.Mu.
func holdFactsNow(l *core.Hold) facts {
	clientOfLock(l.Lock).lock()
	defer clientOfLock(l.Lock).unlock()
	return holdFacts(l)
}

// holdFacts describes the hold to an Observer: Held is the time until now, or until the hold ended. The caller holds
// Machine.Mu.
func holdFacts(l *core.Hold) facts {
	until := clientOfLock(l.Lock).core.Now()
	if l.Ended() != nil {
		until = l.End
	}
	return facts{
		Kind: l.Lock.Key().Kind, Name: l.Lock.Key().Name, Class: l.Lock.Terms.Class, Engine: clientOfLock(l.Lock).core.Traits.Engine,
		Hold: userHold(l), Owner: l.Owner.ID, Token: l.Token(),
		Waited: l.Waited, Held: until.Since(l.Since), Local: l.Local,
		Client: clientOfLock(l.Lock),
	}
}

// userHold returns the identity of l: the inner lease of an upgrade pair is a part of the user's hold. The caller holds
// Machine.Mu.
func userHold(l *core.Hold) *core.Hold {
	if l.Inner && l.UpgradePair != nil {
		return l.UpgradePair
	}
	return l
}

// endOf says how h has ended, or returns nil. It looks at the clock itself.
func endOf(h *core.Hold) error {
	c := clientOfLock(h.Lock)
	c.lock()
	defer c.unlock()
	h.Check(c.core.Now())
	return h.Ended()
}

// tokenOf returns the token of h, which an upgrade may change.
func tokenOf(h *core.Hold) uint64 {
	if h.Lock.Terms.Share.Direct { // of a mutex the token never changes, so it needs no lock
		clientOfLock(h.Lock).lock()
		defer clientOfLock(h.Lock).unlock()
	}
	return h.Token()
}
