package interlock

import (
	"context"
	"errors"
	"github.com/interlock-go/interlock/internal/grants"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Renewals: what one says, how batches travel, and what an answer changes. renew_schedule.go decides when;
// hold_trust.go has the window that an answer moves on, and hold_expire.go what happens when none comes.

// pendingRenewal is one renewal of one grant under way.
type pendingRenewal struct {
	g    *grant
	sent trust.Instant // before the request was sent: the new trust window starts here
	r    driver.Renewal
}

// renewal prepares a renewal of g that is due, and keeps the scheduler from sending another before this one has had
// time to be answered. The caller holds Client.mu.
func (g *grant) renewal(now trust.Instant) pendingRenewal {
	lease, _ := g.renewalTerms()
	g.NotBefore = now.Plus(g.patience())
	switch {
	// A live hold: nothing but the request.
	case g.retained() == nil:
	case g.m.c.hasSessions():
		g.Shown = true
	default:
		g.Shorten(now, lease)
	}
	return g.renewalFor(lease, now)
}

// renewalFor prepares a renewal of g for that lease. It may take effect although it is never answered. So from now on
// everything that g may leave in the engine is taken to last as long (grant.asked). The caller holds Client.mu.
func (g *grant) renewalFor(lease time.Duration, now trust.Instant) pendingRenewal {
	g.Asked = max(g.Asked, lease)
	l := g.holder()
	r := driver.Renewal{
		Key: g.m.key(), ID: g.ID, Lease: lease, Owner: l.owner.id, Pass: int(g.Pass), Label: l.m.p.label,
	}
	// The label of an election is the leader's value: that of the campaign, whoever of its owner shares the term.
	if r.Kind == driver.KindElection {
		r.Label = g.m.p.label
	}
	if g.retained() != nil {
		r.Retained, r.Owner, r.Label = true, "", ""
	}
	return pendingRenewal{g: g, sent: now, r: r}
}

// patience is how long a renewal may go unanswered before the next one is sent: half of the interval. There is no
// number of retries; renewals go on until the trust window ends.
func (g *grant) patience() time.Duration {
	_, pause := g.renewalTerms()
	return pause / 2
}

// retryIn returns the pause after a renewal that failed outright: a tenth of what is left of the window. The tries come
// closer together as the end does, but never closer than minRetry.
func (g *grant) retryIn(now trust.Instant) time.Duration {
	_, pause := g.renewalTerms()
	return min(max(g.remaining(now)/10, minRetry), pause/2)
}

const minRetry = 5 * time.Millisecond

// renewBatch sends renewals that travel together, in a goroutine of its own. Its context ends after half of the longest
// lease among them; Close ends it earlier.
func (c *Client) renewBatch(batch []pendingRenewal) {
	var patience time.Duration
	for _, b := range batch {
		patience = max(patience, b.r.Lease/2)
	}
	ctx, cancel := context.WithTimeout(c.base, patience)
	defer cancel()
	c.sendRenewals(ctx, batch, func(int, error) {})
}

// sendRenewals sends batch and processes each answer as it comes, so that a slow part of it delays no other hold. It
// calls each after every answer, without Client.mu, and returns after the last.
func (c *Client) sendRenewals(ctx context.Context, batch []pendingRenewal, each func(i int, err error)) {
	requests := make([]driver.Renewal, len(batch))
	for i, b := range batch {
		requests[i] = b.r
	}
	c.renewer.Renew(ctx, requests, func(i int, err error) {
		c.lock()
		err = c.renewed(batch[i], err)
		c.unlockInside()
		each(i, err)
	})
}

// renewed processes the answer to one renewal, and returns the error for a caller that waits for it. The caller holds
// Client.mu.
func (c *core) renewed(b pendingRenewal, err error) error {
	g, now := b.g, c.now()
	c.expire(g, now) // an answer that comes after the end does not revive it
	if g.Phase == grants.Gone {
		return g.goneError()
	}
	switch {
	// The session keeps the hold; this only showed operators something.
	case err == nil && c.hasSessions():
		g.showed(b)
	case err == nil:
		left, lease := g.remaining(now), g.Window.Lease
		g.hasSucceeded()
		g.Confirm(b.sent, b.r.Lease)
		g.NotBefore = 0
		g.Mislabelled = g.Mislabelled && b.r.Pass != int(g.Pass)
		c.shell.renewalConfirmed(g, left, lease)
	// The engine says that the hold is gone.
	case errors.Is(err, ErrLost):
		reason, cause := driver.LostExpired, error(nil)
		var told *LostError
		if errors.As(err, &told) {
			reason, cause = told.Reason, told.Cause
		}
		c.lose(g, reason, cause)
		return g.goneError()
	// Nobody holds it, so a grant in doubt is released at once.
	case g.retained() != nil:
		c.releaseRetained(g)
		return err
	// No answer, or an error: the window that was confirmed before still counts, and the next try comes soon.
	default:
		g.hasFailed(err)
		if g.holds.first != nil {
			g.NotBefore = min(g.NotBefore, now.Plus(g.retryIn(now)))
		}
		left := g.remaining(now)
		c.shell.renewalFailed(g, left, err)
	}
	c.reschedule(g)
	return err
}

// renewalConfirmed tells of a confirmed renewal. The caller holds Client.mu.
func (c *Client) renewalConfirmed(g *grant, left, lease time.Duration) {
	c.observeRenewal(g, c.now(), left, lease)
}

// renewalFailed tells of one that failed. The caller holds Client.mu.
func (c *Client) renewalFailed(g *grant, left time.Duration, err error) {
	token := g.Token // read now: an upgrade may change it before the callback runs
	c.afterUnlock(func() {
		c.opts.Logger.Warn("interlock: renewal failed", "lock", g.m.key().Name, "engine", c.traits.Engine,
			"token", token, "remaining", left, "err", err)
	})
	c.observeFailure(g, left, err)
}

// observeRenewal tells the Observer of a confirmed renewal. left is what remained of the trust in a lease of that
// length just before. A renewal is sent before half of a lease is over. So one that is confirmed later had a slow
// answer, or attempts before it have failed: Event.Late. The caller holds Client.mu.
func (c *Client) observeRenewal(g *grant, now trust.Instant, left, lease time.Duration) {
	if c.opts.Observer.Renewed == nil || g.holds.first == nil {
		return
	}
	e := g.holds.first.event()
	e.Remained, e.Margin, e.Late = g.remaining(now), left, left < lease/2
	c.tellLater("Renewed", c.opts.Observer.Renewed, e)
}

// observeFailure tells the Observer of a renewal that failed with err; left is what remains of the trust. On engines
// with sessions nothing is in danger, so nothing is told. The caller holds Client.mu.
func (c *Client) observeFailure(g *grant, left time.Duration, err error) {
	if c.opts.Observer.RenewalFailed == nil || g.holds.first == nil || !c.hasLeases() {
		return
	}
	e := g.holds.first.event()
	e.Remained, e.Err = left, unavailable("renew", g.m.key(), err)
	c.tellLater("RenewalFailed", c.opts.Observer.RenewalFailed, e)
}

// renewNow renews g for at least lease and waits for the answer, for Extend, re-entry and passes. It returns nil when
// the renewal is confirmed, and the loss if g is lost. It returns an *UnavailableError when the engine has not answered
// within half a lease or the rest of the trust, or when ctx has ended. A renewal that ctx has left goes on, and counts
// if it is answered.
func (c *Client) renewNow(ctx context.Context, g *grant, lease time.Duration) error {
	c.lock()
	now := c.now()
	c.expire(g, now)
	if g.Phase == grants.Gone {
		defer c.unlock()
		return g.goneError()
	}
	wanted, _ := g.renewalTerms()
	b, left := g.renewalFor(max(lease, wanted), now), g.remaining(now)
	c.unlock()
	bounded, cancel := context.WithTimeout(c.base, min(b.r.Lease/2, left))
	// The buffer lets the answer be processed when nobody waits for it any more.
	answered := make(chan error, 1)
	send := func() {
		defer cancel()
		c.sendRenewals(bounded, []pendingRenewal{b}, func(_ int, err error) { answered <- err })
	}
	// A local engine answers at once, so no goroutine is needed.
	if c.traits.Local {
		send()
	} else if !c.spawn(send) {
		cancel()
		return ErrClosed
	}
	select {
	case err := <-answered:
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrReleased) {
			return err
		}
		return unavailable("renew", g.m.key(), err)
	case <-ctx.Done():
	}
	c.lock()
	defer c.unlock()
	if g.Phase == grants.Gone { // a loss ends the hold's contexts too, so it may be why ctx has ended
		return g.goneError()
	}
	return unavailable("renew", g.m.key(), ctx.Err())
}
