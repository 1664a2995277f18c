package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
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
	h := l.hold()

	if err := l.checkMade(); err != nil {
		return err
	}
	c := clientOfLock(h.Lock)
	c.lock()
	now := c.core.Now()
	h.Check(now)
	if err := h.Ended(); err != nil {
		c.unlock()
		h.Owner.Remove(h) // as in Unlock
		return wrap("abandon", h.Lock.Key(), err)
	}
	if h.UpgradePair != nil {
		read := h.SplitPair()
		// Both grants of an upgraded hold are left to run out.
		read.Engine.Phase = grants.Abandoned
		read.EndHold(now)
	}
	h.Engine.Phase = grants.Abandoned
	h.EndHold(now) // nothing is asked, so there is no confirmation to await
	c.unlock()
	h.Owner.Remove(h)
	c.opts.Logger.Warn("interlock: lock left to run out", "lock", l.Name(), "engine", c.core.Traits.Engine,
		"token", l.Token(), "owner", h.Owner.ID)
	tellReleased(h, nil)
	return nil
}

// renewToRunOut sends the last renewal of a lock that is left to run out, until it is answered or the trust is over,
// which was left away when it was prepared. Close waits for it: only c.hard ends it early. Nobody holds the lock any
// more, so the answer changes nothing here.
func (c *Client) renewToRunOut(one []core.PendingRenewal, left time.Duration) {
	ctx, cancel := context.WithTimeout(c.hard, left)
	defer cancel()
	for wait := settleFirst; ; wait *= 2 {
		var err error
		c.renewer.Renew(ctx, []driver.Renewal{one[0].Renewal}, func(_ int, answer error) { err = answer })
		if err == nil {
			return
		}
		if errors.Is(err, ErrLost) || !pause(ctx, wait) {
			c.opts.Logger.Warn("interlock: lock left to run out was not renewed; it may be free before a lease is over",
				"lock", one[0].Renewal.Name, "engine", c.core.Traits.Engine, "err", err)
			return
		}
	}
}

// releaseWhenDue releases own after that time, unless Close has taken it over. It ends soon after, or with Close.
func (c *Client) releaseWhenDue(own *core.LateRelease, after time.Duration) {
	pause(c.base, after)
	if c.takeRunOut(own) {
		_, _ = c.settleNow(own.Lock, own.Release)
	}
}

// takeRunOut takes own over, to release it. It reports false if Close has done so: exactly one of the two releases it.
func (c *Client) takeRunOut(own *core.LateRelease) bool {
	c.lock()
	defer c.unlock()
	_, mine := c.core.LeftToExpire[own]
	delete(c.core.LeftToExpire, own)
	return mine
}

// takeAllRunOuts is takeRunOut for Close: it returns all that is left to run out, held or not, and ends the holds. On
// engines with leases it returns nothing, because leases end by themselves. The caller holds Machine.Mu.
func (c *Client) takeAllRunOuts() (all []core.LateRelease) {
	left := c.core.LeftToExpire
	c.core.LeftToExpire = nil
	if c.core.HasLeases() {
		return nil
	}
	for own := range left {
		all = append(all, *own)
	}
	for _, g := range c.core.EngineHolds {
		for g != nil {
			next := g.After
			if g.Phase == grants.Abandoned {
				at := c.core.Now().Plus(g.ExpiryDelay())
				all = append(all, core.LateRelease{Lock: g.Lock, Release: g.ReleaseRequest(), At: at})
				c.dropGrant(g)
			}
			g = next
		}
	}
	return all
}
