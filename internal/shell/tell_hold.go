package shell

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// How a hold ends, and who is told: its contexts, channels and waits here, at once; the Observer and the log once
// Machine.Mu has been given up. lease.go has what its owner sees; internal/core/end.go and release.go decide when.

// lost tells that l was lost. The caller holds Machine.Mu.
func (c *Client) lost(l *core.Hold, lost *driver.LostError) {
	// Read under Machine.Mu; the callback below runs after it.
	told, held := l.Announced == core.AnnouncedStart, l.End.Since(l.Since)
	c.Machine.AfterUnlock(func() {
		if told {
			c.tellLost(HoldFactsNow(l), lost)
		}
		attrs := []any{
			"kind", string(l.Lock.Key().Kind), "lock", l.Lock.Key().Name, "class", l.Lock.Terms.Class, "engine", c.Machine.Traits.Engine, "token",
			lost.Token,
			"owner", l.Owner.ID, "held", held, "reason", string(lost.Reason),
		}
		if lost.Cause != nil {
			attrs = append(attrs, "err", lost.Cause)
		}
		c.Config.Logger.Error("interlock: lock lost", attrs...)
	})
}

// tellAdopted tells that the hold has gone on to another client. Its owner no longer has it and need not unlock it. The
// caller holds Machine.Mu.
func tellAdopted(l *core.Hold) {
	c := ClientOfLock(l.Lock)
	c.Machine.AfterUnlock(func() {
		l.Owner.Remove(l)
		TellReleased(l, nil)
		c.Config.Logger.Info("interlock: another client has adopted the lock", "lock", l.Lock.Key().Name, "engine",
			c.Machine.Traits.Engine, "token", TokenOf(l), "owner", l.Owner.ID)
	})
}

// holdFactsNow is event for a caller that does not hold Machine.Mu.
func HoldFactsNow(l *core.Hold) Facts {
	ClientOfLock(l.Lock).Lock()
	defer ClientOfLock(l.Lock).Unlock()
	return holdFacts(l)
}

// holdFacts describes the hold to an Observer: Held is the time until now, or until the hold ended. The caller holds
// Machine.Mu.
func holdFacts(l *core.Hold) Facts {
	until := ClientOfLock(l.Lock).Machine.Now()
	if l.Ended() != nil {
		until = l.End
	}
	return Facts{
		Kind: l.Lock.Key().Kind, Name: l.Lock.Key().Name, Class: l.Lock.Terms.Class, Engine: ClientOfLock(l.Lock).Machine.Traits.Engine,
		Hold: userHold(l), Owner: l.Owner.ID, Token: l.Token(),
		Waited: l.Waited, Held: until.Since(l.Since), Local: l.Local,
		Client: ClientOfLock(l.Lock),
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
func EndOf(h *core.Hold) error {
	c := ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Machine.Now())
	return h.Ended()
}

// tokenOf returns the token of h, which an upgrade may change.
func TokenOf(h *core.Hold) uint64 {
	if h.Lock.Terms.Share.Direct { // of a mutex the token never changes, so it needs no lock
		ClientOfLock(h.Lock).Lock()
		defer ClientOfLock(h.Lock).Unlock()
	}
	return h.Token()
}
