package interlock

import (
	"time"

	"github.com/interlock-go/interlock/internal/core"
)

// Pending marks a hold under which something is under way that nobody can stop. lease_abandon.go lets such a lock run
// out; internal/core/end.go and Close (interlock.go) ask isPending before they would give it back.

// Pending says that something is under way under this hold which nobody can stop and whose outcome is not known yet,
// such as the COMMIT of a transaction. Until over is called, only the holder gives the lock back before its time.
// Everything else that would do so leaves it to run out instead, as [Lease.Abandon] does. That is the end of MaxHold,
// of a lease that is not renewed, or of trust, and [Client.Close]. Close first waits for over, for half of its
// CloseTimeout. Package locktx uses it.
//
// Nothing else changes. The hold is renewed and lost as before, Unlock gives it back, and Break by an operator takes it
// away. Pending asks no engine. It fails like Err when the hold has ended, and with ErrClosed when the client is being
// closed: then begin nothing. Call over in the end, once the holder has unlocked or abandoned the hold; further calls
// of it do nothing.
func (l *Lease) Pending() (over func(), err error) {
	h := l.hold()

	if err := l.checkMade(); err != nil {
		return nil, err
	}
	c := clientOfLock(h.Lock)
	c.lock()
	defer c.unlock()
	h.Check(c.core.Now())
	if err := h.Ended(); err != nil {
		return nil, wrap("use", h.Lock.Key(), err)
	}
	if c.core.Closed {
		return nil, wrap("use", h.Lock.Key(), ErrClosed)
	}
	h.Pending++
	c.pending++
	done := false
	return func() {
		c.lock()
		defer c.unlock()
		if done {
			return
		}
		done = true
		h.Pending--
		c.pending--
		if c.pending == 0 && c.quiet != nil {
			close(c.quiet)
			c.quiet = nil
		}
	}, nil
}

// awaitPending waits, in Close, until nothing is pending any more, or for most. The caller holds Machine.Mu, which is
// given up meanwhile: renewals go on, and over needs it.
func (c *Client) awaitPending(most time.Duration) {
	if c.pending == 0 {
		return
	}
	quiet, limit := make(chan struct{}), time.NewTimer(most)
	defer limit.Stop()
	c.quiet = quiet
	c.unlock()
	select {
	case <-quiet:
	case <-limit.C:
	}
	c.lock()
}

// leavePending marks what is still pending, so that Close leaves it to run out. Where nothing runs out by itself,
// releaseLater keeps it for a lease. The caller holds Machine.Mu.
func (c *Client) leavePending() {
	if c.pending == 0 {
		return
	}
	for _, g := range c.core.EngineHolds {
		for ; g != nil; g = g.After {
			if g.IsPending() {
				g.LeaveAtClose()
			}
		}
	}
}

// leftPending logs that. The caller holds Machine.Mu.
func (c *Client) leftPending(g *core.EngineHold) {
	c.core.AfterUnlock(func() {
		c.opts.Logger.Warn("interlock: closed while something was pending: lock left to run out",
			"lock", g.Lock.Key().Name, "engine", c.core.Traits.Engine, "token", g.Token)
	})
}
