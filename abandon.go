package interlock

import "github.com/interlock-go/interlock/driver"

// Abandon ends this hold without giving the lock back: it is renewed no more, and the lock becomes free when its lease has run
// out, as after a crash of this process. It is for work whose outcome is unknown, such as a transaction whose COMMIT was not
// answered: nobody else is to begin while that may still be under way. Package locktx uses it.
//
// Abandon asks no engine and returns at once. From then on Err says ErrReleased, contexts made by Context have ended, and the
// owner is out: its next Lock waits like everybody's. If the owner has further holds on this acquisition, they go on and are
// renewed, and when the last of them has ended, the lock is left to run out, however that one ended; until then it cannot be
// given up for a condition ([Cond.Wait] says ErrNested). Like Unlock, Abandon returns the *LostError after a loss, and
// ErrReleased after a release.
//
// On engines with leases the lock is free one lease (the longest that was asked for, as by Extend) after the last renewal, also
// if the process ends or the client is closed meanwhile. Where a hold lasts as long as a session or a process, this client keeps
// it for one lease from now, and then gives it back in the background; [Client.Close] gives it back at once, as the end of the
// session would.
func (l *Lease) Abandon() error {
	c := l.m.c
	c.lock()
	now := c.now()
	l.check(now)
	if err := l.ended(); err != nil {
		c.unlock()
		l.owner.remove(l) // as in Unlock
		return err
	}
	if l.pair != nil {
		read := l.part()
		read.g.phase = abandoned
		read.giveUp(now)
	}
	l.g.phase = abandoned
	l.giveUp(now) // there is no word of the engine to await: nothing is asked
	c.unlock()
	l.owner.remove(l)
	c.opts.Logger.Warn("interlock: lock left to run out", "lock", l.Name(), "engine", c.traits.Engine,
		"token", l.Token(), "owner", l.owner.id)
	l.tellReleased(nil)
	return nil
}

// leave ends g in this process and lets it run out. The caller holds Client.mu.
func (g *grant) leave() {
	g.drop()
	g.runOut()
	g.m.c.askFor(g.m) // those who wait here stand in the engine's line now
}

// runOut gives g back when its lease is over, also if a renewal was under way. On engines with leases that does nothing any
// more but clear up, because it names this one hold. The caller holds Client.mu, and has dropped g.
func (g *grant) runOut() {
	c, r, lease := g.m.c, g.release(), max(g.asked, g.m.p.lease)
	c.background.Go(func() { // ends soon after the lease, or with Close
		if pause(c.base, lease) || c.traits.Ends != driver.Leases {
			_, _ = c.settleNow(r)
		}
	})
}
