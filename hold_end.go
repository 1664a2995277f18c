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
			c.tellLost(holdEventNow(l), lost)
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
			c.core.Traits.Engine, "token", leaseOf(l).Token(), "owner", l.Owner.ID)
	})
}

// holdEventNow is event for a caller that does not hold Machine.Mu.
func holdEventNow(l *core.Hold) Event {
	clientOfLock(l.Lock).lock()
	defer clientOfLock(l.Lock).unlock()
	return holdEvent(l)
}

// holdEvent describes the hold to an Observer: Held is the time until now, or until the hold ended. The caller holds
// Machine.Mu.
func holdEvent(l *core.Hold) Event {
	until := clientOfLock(l.Lock).core.Now()
	if l.Ended() != nil {
		until = l.End
	}
	return Event{
		Kind: l.Lock.Key().Kind, Name: l.Lock.Key().Name, Class: l.Lock.Terms.Class, Engine: clientOfLock(l.Lock).core.Traits.Engine,
		Hold: holdID(l), Owner: l.Owner.ID, Token: l.Token(),
		Waited: l.Waited, Held: until.Since(l.Since), Local: l.Local,
		c: clientOfLock(l.Lock),
	}
}
