package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
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
	if err := l.checkMade(); err != nil {
		return err
	}
	c := l.m.client()
	c.lock()
	now := c.now()
	l.check(now)
	if err := l.ended(); err != nil {
		c.unlock()
		l.owner.remove(l) // as in Unlock
		return wrap("abandon", l.m.key(), err)
	}
	if l.upgradePair != nil {
		read := l.splitPair()
		// Both grants of an upgraded hold are left to run out.
		read.g.Phase = grants.Abandoned
		read.giveUp(now)
	}
	l.g.Phase = grants.Abandoned
	l.giveUp(now) // nothing is asked, so there is no confirmation to await
	c.unlock()
	l.owner.remove(l)
	c.opts.Logger.Warn("interlock: lock left to run out", "lock", l.Name(), "engine", c.traits.Engine,
		"token", l.Token(), "owner", l.owner.id)
	l.tellReleased(nil)
	return nil
}

// renewToRunOut sends the last renewal of a lock that is left to run out, until it is answered or the trust is over,
// which was left away when it was prepared. Close waits for it: only c.hard ends it early. Nobody holds the lock any
// more, so the answer changes nothing here.
func (c *Client) renewToRunOut(one []pendingRenewal, left time.Duration) {
	ctx, cancel := context.WithTimeout(c.hard, left)
	defer cancel()
	for wait := settleFirst; ; wait *= 2 {
		var err error
		c.renewer.Renew(ctx, []driver.Renewal{one[0].r}, func(_ int, answer error) { err = answer })
		if err == nil {
			return
		}
		if errors.Is(err, ErrLost) || !pause(ctx, wait) {
			c.opts.Logger.Warn("interlock: lock left to run out was not renewed; it may be free before a lease is over",
				"lock", one[0].r.Name, "engine", c.traits.Engine, "err", err)
			return
		}
	}
}

// releaseWhenDue releases own after that time, unless Close has taken it over. It ends soon after, or with Close.
func (c *Client) releaseWhenDue(own *lateRelease, after time.Duration) {
	pause(c.base, after)
	if c.takeRunOut(own) {
		_, _ = c.settleNow(own.m, own.r)
	}
}

// takeRunOut takes own over, to release it. It reports false if Close has done so: exactly one of the two releases it.
func (c *Client) takeRunOut(own *lateRelease) bool {
	c.lock()
	defer c.unlock()
	_, mine := c.runningOut[own]
	delete(c.runningOut, own)
	return mine
}

// takeAllRunOuts is takeRunOut for Close: it returns all that is left to run out, held or not, and ends the holds. On
// engines with leases it returns nothing, because leases end by themselves. The caller holds Client.mu.
func (c *Client) takeAllRunOuts() (all []lateRelease) {
	left := c.runningOut
	c.runningOut = nil
	if c.hasLeases() {
		return nil
	}
	for own := range left {
		all = append(all, *own)
	}
	for _, g := range c.grants {
		for g != nil {
			next := g.next
			if g.Phase == grants.Abandoned {
				all = append(all, lateRelease{g.m, g.releaseRequest(), c.now().Plus(g.runOutAfter())})
				c.dropGrant(g)
			}
			g = next
		}
	}
	return all
}
