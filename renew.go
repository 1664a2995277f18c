package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// pendingRenewal is one renewal of one grant under way.
type pendingRenewal struct {
	g    *grant
	sent instant // before the request was sent: where the new trust window starts
	r    driver.Renewal
}

// renewal prepares a renewal of g, and keeps the scheduler from sending another before this one had time to be
// answered. The caller holds Client.mu.
func (g *grant) renewal(now instant) pendingRenewal {
	lease, _ := g.wanted()
	g.notBefore = now.plus(g.patience())
	switch {
	case g.retained() == nil:
	case g.m.c.hasSessions():
		g.shown = true
	default:
		g.shorten(now, lease)
	}
	return g.renewalFor(lease, now)
}

// renewalFor prepares a renewal of g for that lease. It may count although it is never answered, so what g may leave in
// the engine lasts as long from here on. The caller holds Client.mu.
func (g *grant) renewalFor(lease time.Duration, now instant) pendingRenewal {
	g.asked = max(g.asked, lease)
	l := g.holder()
	r := driver.Renewal{
		Key: g.m.key(), ID: g.id, Lease: lease, Owner: l.owner.id, Pass: int(g.pass), Label: l.m.p.label,
	}
	if r.Kind == driver.KindElection { // whoever shares the term, its value is that of who campaigned for it
		r.Label = g.m.p.label
	}
	if g.retained() != nil {
		r.Retained, r.Owner, r.Label = true, "", ""
	}
	return pendingRenewal{g: g, sent: now, r: r}
}

// patience is how long a renewal may go unanswered before the next one is sent. There is no number of retries: renewals
// go on until the trust window ends.
func (g *grant) patience() time.Duration {
	_, pause := g.wanted()
	return pause / 2
}

// retryIn is the pause after a renewal that failed outright: a tenth of what is left, so that the tries come closer
// together as the end does, but no hammering.
func (g *grant) retryIn(now instant) time.Duration {
	_, pause := g.wanted()
	return min(max(g.remaining(now)/10, minRetry), pause/2)
}

const minRetry = 5 * time.Millisecond

// renewBatch sends renewals that travel together. The context ends when the most patient of them would be sent again.
func (c *Client) renewBatch(batch []pendingRenewal) {
	var patience time.Duration
	for _, b := range batch {
		patience = max(patience, b.r.Lease/2)
	}
	ctx, cancel := context.WithTimeout(c.base, patience)
	defer cancel()
	c.sendRenewals(ctx, batch, func(int, error) {})
}

// sendRenewals sends batch and takes in each answer as it comes. It calls each after every one.
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

// renewed takes in the answer to one renewal. The caller holds Client.mu.
func (c *Client) renewed(b pendingRenewal, err error) error {
	g, now := b.g, c.now()
	c.expire(g, now) // an answer that comes after the end does not revive it
	if g.phase == gone {
		return g.goneError()
	}
	switch {
	case err == nil && c.hasSessions():
		g.showed(b)
	case err == nil:
		left, lease := g.remaining(now), g.lease
		g.confirm(b.sent, b.r.Lease)
		g.notBefore = 0
		g.mislabelled = g.mislabelled && b.r.Pass != int(g.pass)
		c.observeRenewal(g, now, left, lease)
	case errors.Is(err, ErrLost):
		reason, cause := driver.LostExpired, error(nil)
		var told *LostError
		if errors.As(err, &told) {
			reason, cause = told.Reason, told.Cause
		}
		c.lose(g, reason, cause)
		return g.goneError()
	case g.retained() != nil: // it is nobody's, so what is in doubt goes back
		c.giveBack(g)
		return err
	default:
		g.hasFailed(err)
		if g.holds.first != nil {
			g.notBefore = min(g.notBefore, now.plus(g.retryIn(now)))
		}
		left, token := g.remaining(now), g.token // which an upgrade changes
		c.afterUnlock(func() {
			c.opts.Logger.Warn("interlock: renewal failed", "lock", g.m.key().Name, "engine", c.traits.Engine,
				"token", token, "remaining", left, "err", err)
		})
		c.observeFailure(g, left, err)
	}
	c.reschedule(g)
	return err
}

// observeRenewal tells the Observer of a renewal that was confirmed when so much was left of the trust in a lease of
// that length. A renewal is sent after less than half of a lease, so one that is confirmed later had a slow answer, or
// attempts before it have failed. The caller holds Client.mu.
func (c *Client) observeRenewal(g *grant, now instant, left, lease time.Duration) {
	if c.opts.Observer.Renewed == nil || g.holds.first == nil {
		return
	}
	e := g.holds.first.event()
	e.Remained, e.Margin, e.Late = g.remaining(now), left, left < lease/2
	c.tellLater("Renewed", c.opts.Observer.Renewed, e)
}

// observeFailure tells the Observer of a renewal that has failed with err, when so much of the trust is left. The
// caller holds Client.mu.
func (c *Client) observeFailure(g *grant, left time.Duration, err error) {
	if c.opts.Observer.RenewalFailed == nil || g.holds.first == nil || !c.hasLeases() { // else nothing is in danger
		return
	}
	e := g.holds.first.event()
	e.Remained, e.Err = left, unavailable("renew", g.m.key(), err)
	c.tellLater("RenewalFailed", c.opts.Observer.RenewalFailed, e)
}

// renewNow renews g for at least lease, in the caller's time, and waits for the answer. An engine that does not answer
// within half a lease, or until g is lost, counts as unavailable.
func (c *Client) renewNow(ctx context.Context, g *grant, lease time.Duration) error {
	c.lock()
	now := c.now()
	c.expire(g, now)
	if g.phase == gone {
		defer c.unlock()
		return g.goneError()
	}
	wanted, _ := g.wanted()
	b, left := g.renewalFor(max(lease, wanted), now), g.remaining(now)
	c.unlock()
	bounded, cancel := context.WithTimeout(c.base, min(b.r.Lease/2, left))
	answered := make(chan error, 1)
	send := func() {
		defer cancel()
		c.sendRenewals(bounded, []pendingRenewal{b}, func(_ int, err error) { answered <- err })
	}
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
	if g.phase == gone { // which also ends the contexts that the hold gave out, so it may be why ctx has ended
		return g.goneError()
	}
	return unavailable("renew", g.m.key(), ctx.Err())
}
