package shell

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// Renewals: what one says, how batches travel, and what an answer changes. internal/core/renew.go decides when,
// and what an answer changes; internal/core/end.go has what happens when none comes.

// renewBatch sends renewals that travel together, in a goroutine of its own. Its context ends after half of the longest
// lease among them; Close ends it earlier.
func (c *Client) renewBatch(batch []core.PendingRenewal) {
	var patience time.Duration
	for _, b := range batch {
		patience = max(patience, b.Renewal.Lease/2)
	}
	ctx, cancel := context.WithTimeout(c.renewCtx, patience)
	defer cancel()
	c.sendRenewals(ctx, batch, func(int, error) {})
}

// sendRenewals sends batch and processes each answer as it comes, so that a slow part of it delays no other hold. It
// calls each after every answer, without Machine.Mu, and returns after the last.
func (c *Client) sendRenewals(ctx context.Context, batch []core.PendingRenewal, each func(i int, err error)) {
	requests := make([]driver.Renewal, len(batch))
	for i, b := range batch {
		requests[i] = b.Renewal
	}
	c.renewer.Renew(ctx, requests, func(i int, err error) {
		c.Lock()
		err = c.Renewed(batch[i], err)
		c.unlockInside()
		each(i, err)
	})
}

// renewalConfirmed tells of a confirmed renewal. The caller holds Machine.Mu.
func (c *Client) renewalConfirmed(g *core.EngineHold, left, lease time.Duration) {
	c.ObserveRenewal(g, c.Now(), left, lease)
}

// renewalFailed tells of one that failed. again says that the one before it has failed too. The caller holds
// Machine.Mu.
func (c *Client) renewalFailed(g *core.EngineHold, left time.Duration, again bool, err error) {
	token := g.Token // read now: an upgrade may change it before the callback runs
	c.AfterUnlock(func() {
		c.Config.Logger.Log(c.renewCtx, onceWarn(again), "interlock: renewal failed",
			"lock", g.Lock.Key().Name, "engine", c.Traits.Engine,
			"token", token, "remaining", left, "err", err)
	})
	c.ObserveFailure(g, left, err)
}

// onceWarn is the level of a record that is repeated while an engine cannot be reached, for each lock, up to ten times
// a second. Only the first of them is a warning.
func onceWarn(again bool) slog.Level {
	if again {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// ObserveRenewal tells the Observer of a confirmed renewal. left is what remained of the trust in a lease of that
// length just before. A renewal is sent before half of a lease is over. So one that is confirmed later had a slow
// answer, or attempts before it have failed: Event.Late. The caller holds Machine.Mu.
func (c *Client) ObserveRenewal(g *core.EngineHold, now trust.Instant, left, lease time.Duration) {
	if c.Config.Observer.Renewed == nil || !g.IsHeld() {
		return
	}
	e := holdFacts(g.Holder())
	e.Remained, e.Margin, e.Late = g.TrustLeft(now), left, left < lease/2
	c.tellLater("Renewed", c.Config.Observer.Renewed, e)
}

// ObserveFailure tells the Observer of a renewal that failed with err; left is what remains of the trust. On engines
// with sessions nothing is in danger, so nothing is told. The caller holds Machine.Mu.
func (c *Client) ObserveFailure(g *core.EngineHold, left time.Duration, err error) {
	if c.Config.Observer.RenewalFailed == nil || !g.IsHeld() || !c.HasLeases() {
		return
	}
	e := holdFacts(g.Holder())
	e.Remained, e.Err = left, Unavailable("renew", g.Lock.Key(), err)
	c.tellLater("RenewalFailed", c.Config.Observer.RenewalFailed, e)
}

// renewNow renews g for at least lease and waits for the answer, for Extend, re-entry and passes. It returns nil when
// the renewal is confirmed, and the loss if g is lost. It returns an *UnavailableError when the engine has not answered
// within half a lease or the rest of the trust, or when ctx has ended. A renewal that ctx has left goes on, and counts
// if it is answered.
func (c *Client) renewNow(ctx context.Context, g *core.EngineHold, lease time.Duration) error {
	c.Lock()
	now := c.Now()
	c.Expire(g, now)
	if g.Phase == grants.Gone {
		defer c.Unlock()
		return g.GoneError()
	}
	wanted, _ := g.RenewalTerms()
	b, left := g.RenewalFor(max(lease, wanted), now), g.TrustLeft(now)
	c.Unlock()
	bounded, cancel := context.WithTimeout(c.renewCtx, min(b.Renewal.Lease/2, left))
	// The buffer lets the answer be processed when nobody waits for it any more.
	answered := make(chan error, 1)
	send := func() {
		defer cancel()
		c.sendRenewals(bounded, []core.PendingRenewal{b}, func(_ int, err error) { answered <- err })
	}
	// A local engine answers at once, so no goroutine is needed.
	if c.Traits.Local {
		send()
	} else if !c.spawn(send) {
		cancel()
		return driver.ErrClosed
	}
	select {
	case err := <-answered:
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrReleased) {
			return err
		}
		return Unavailable("renew", g.Lock.Key(), err)
	case <-ctx.Done():
	}
	c.Lock()
	defer c.Unlock()
	if g.Phase == grants.Gone { // a loss ends the hold's contexts too, so it may be why ctx has ended
		return g.GoneError()
	}
	return Unavailable("renew", g.Lock.Key(), ctx.Err())
}

// After a reconnection: the server may have been restarted, and have forgotten what it had granted. Without a question
// the holders would trust their leases until the next renewals, a third of a lease later, beside whoever got in since.

// heedReconnections has the driver tell of reconnections until the client is closed, if it can.
func (c *Client) heedReconnections() {
	if r, can := c.Driver.(driver.Reconnector); can && c.HasLeases() {
		context.AfterFunc(c.renewCtx, r.OnReconnect(c.renewHeld))
	}
}

// renewHeld sends a renewal for every live hold, in batches, and does not wait for the answers. Of those whose renewal
// is under way it sends none: that one asks the same.
func (c *Client) renewHeld() {
	c.Lock()
	defer c.unlockInside()
	var batch []core.PendingRenewal
	send := func() {
		if len(batch) > 0 && !c.Closed { // Close waits for no new goroutine
			c.Emit(core.Effect{Verb: core.SendRenewals, Batch: batch})
		}
		batch = nil
	}
	looked := 0
	for _, g := range c.EngineHolds {
		if looked++; looked%core.AtOnce == 0 { // as bundle.yieldMutex does
			c.unlockInside()
			c.Lock()
		}
		now := c.Now()
		for ; g != nil; g = g.After {
			if mayHaveBeenForgotten(g, now) {
				batch = append(batch, g.Renewal(now))
				c.Reschedule(g)
			}
		}
		if len(batch) >= core.MostTogether {
			send()
		}
	}
	send()
}

// mayHaveBeenForgotten reports whether a renewal has to find out whether the engine still knows g. A lock that is
// retained is not asked for: nobody relies on it, and whoever takes it again asks first where there is doubt. The
// caller holds Machine.Mu.
func mayHaveBeenForgotten(g *core.EngineHold, now trust.Instant) bool {
	_, failed := g.Lock.Core.Failures[g]
	return g.Phase != grants.Gone && g.Renewing() && g.Retained() == nil && (failed || now >= g.NotBefore)
}

// When something is due: one goroutine and one timer for all holds of a client. It sends renewals, ends what
// is over (internal/core/end.go), cooldowns and retentions, and runs the search for deadlocks (deadlock.go). A
// goroutine or a timer for each hold was refused (docs/rationale.md, The trust window).

// arm sets the timer for that instant, and does not wake the goroutine now. To wake it would cost each hand-over more
// than its other work in this process. The goroutine would also want Machine.Mu while the caller still holds it. The
// caller holds Machine.Mu.
func (c *Client) arm(at trust.Instant) {
	s := &c.Scheduler
	s.Armed = at
	if at == trust.Never {
		s.Timer.Stop()
		return
	}
	pause := at.Since(c.Reading())
	// The timer stands still while the machine is suspended. With this bound a suspension is noticed a second after it
	// at the latest.
	if c.Watching {
		pause = min(pause, core.SuspensionCheck)
	}
	s.Timer.Reset(pause)
}

// watch is the scheduler's goroutine. Close ends it.
func (c *Client) watch() {
	defer c.Scheduler.Timer.Stop()
	for {
		c.Lock()
		now := c.Now()
		// Before collect, because a suspension has brought all ends nearer.
		c.HeedSuspensions()
		batch := c.Collect(now)
		c.arm(min(c.Deadlocks.look(c, now), c.Scheduler.Next(now)))
		if len(batch) > 0 {
			c.Emit(core.Effect{Verb: core.SendRenewals, Batch: batch})
		}
		c.unlockInside()
		select {
		case <-c.Scheduler.Timer.C:
		case <-c.renewCtx.Done():
			return
		}
	}
}
