package interlock

import (
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/shell"
)

// Abandon, and what leaves a lock to run out: the engine's lease where there is one, and elsewhere a timer of this
// process. locktx is its user; lease_pending.go has the other half, what must not be given back while its outcome is
// open.

// Abandon ends this hold without giving the lock back. It is renewed no more, and the lock becomes free when its lease
// has run out, as after a crash of this process. It is for work whose outcome is unknown, such as a transaction whose
// COMMIT was not answered. No other owner is to begin while that may still be under way. Package locktx uses it.
//
// Abandon returns at once. From then on Err says ErrReleased, contexts made by Context have ended,
// and the owner is out: its next Lock waits like everybody's. If the owner has further holds on this acquisition, they
// go on and are renewed. When the last of them has ended, however it ended, the lock is left to run out. Until then it
// cannot be given up for a condition ([Cond.Wait] returns ErrNested). Like Unlock, Abandon returns the *LostError after
// a loss, and an error that matches ErrReleased after a release.
//
// On engines with leases the lock is free one lease after the last renewal, also if the process ends or the client is
// closed meanwhile. The lease that counts is the longest that was asked for, as by Extend. The engine may have less
// than that for a lock of which it was not asked yet: one that was pushed to this client, or taken over while retained.
// Then Abandon has it renewed once more, in the background; Close waits for that. If the process ends before, or the
// engine does not answer, such a lock is free within 2 s. Where a hold lasts as long as a session or a process, this
// client keeps it for one lease from now. If the rest of its MinHold is longer, it keeps it for that. It then gives it
// back in the background, also if the client is closed meanwhile. The end of the process, or of the session, frees the
// lock at once.
func (l *Lease) Abandon() error {
	h := l.hold()
	if err := l.checkMade(); err != nil {
		return err
	}
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	now := c.Machine.Now()
	h.Check(now)
	if err := h.Ended(); err != nil {
		c.Unlock()
		h.Owner.Remove(h) // as in Unlock
		return shell.Wrap("abandon", h.Lock.Key(), err)
	}
	if h.UpgradePair != nil {
		read := h.SplitPair()
		// Both grants of an upgraded hold are left to run out.
		read.Engine.Phase = grants.Abandoned
		read.EndHold(now)
	}
	h.Engine.Phase = grants.Abandoned
	h.EndHold(now) // nothing is asked, so there is no confirmation to await
	c.Unlock()
	h.Owner.Remove(h)
	c.Config.Logger.Warn("interlock: lock left to run out", "lock", l.Name(), "engine", c.Machine.Traits.Engine,
		"token", l.Token(), "owner", h.Owner.ID)
	shell.TellReleased(h, nil)
	return nil
}
