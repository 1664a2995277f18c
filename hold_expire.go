package interlock

import (
	"github.com/interlock-go/interlock/driver"
)

// What ends by itself, or by the engine's word: the trust in a grant, and the time of a hold.

// expire ends g if its trust window is over, and those of its holds whose own end has come. The caller holds Client.mu.
func (c *Client) expire(g *grant, now instant) {
	if g.phase == gone {
		return
	}
	if end := g.deadline(); now >= end {
		c.end(g, g.reason(now, end))
		return
	}
	for l := range g.holds.all(ofGrant) {
		if now >= l.end {
			g.delay(l, now)
			l.lose(driver.LostExpired, nil)
		}
	}
	if g.holds.first == nil && !g.between && (g.phase == abandoned || !g.keepForCooldown()) {
		c.end(g, driver.LostExpired)
	}
}

// reason says why the trust window of g ended at end.
func (g *grant) reason(now, end instant) LostReason {
	c, from := g.m.c, g.sent
	if g.session() != nil {
		from = c.at(g.session().Confirmed())
	}
	switch {
	case now < end.plus(c.suspensions.since(from)):
		return driver.LostSuspended // without the suspension there would be time left
	case g.session() == nil && !g.renewing():
		return driver.LostExpired
	default:
		return driver.LostUnconfirmed
	}
}

// end loses g on this process's own judgement. The engine may still count it as held, so it is given back as soon as
// the engine can be reached: it must not block others for longer than it protects anybody. The caller holds Client.mu.
//
// The release begins after the holder's contexts have been cancelled: nobody is to get in before the holder is told.
func (c *Client) end(g *grant, reason LostReason) {
	for l := range g.holds.all(ofGrant) {
		g.delay(l, c.reading())
	}
	give, left := g.release(), g.phase == abandoned || g.isPending()
	give.Keep = g.keep()
	after := g.runOutAfter()
	c.lose(g, reason, g.cause(reason))
	if left {
		g.runOut(after)
		return
	}
	c.background.Add(1)
	c.settleAfterUnlock(g.m, give)
}

// settleAfterUnlock gives back in the background, once the contexts that are to be cancelled have been. The caller
// holds Client.mu, and has counted it as background.
func (c *Client) settleAfterUnlock(m *Mutex, give *driver.Release) {
	c.deferred.cancels = append(c.deferred.cancels, func() {
		go func() { // ends with the engine's word, or with c.hard
			defer c.background.Done()
			_, _ = c.settleNow(m, give)
		}()
	})
}

// lose ends g and all its holds as a loss, and sends those who wait behind it to the engine: they must not wait for the
// loser's Unlock. The caller holds Client.mu.
func (c *Client) lose(g *grant, reason LostReason, cause error) {
	if g.phase == gone {
		return
	}
	for l := range g.holds.all(ofGrant) {
		l.lose(reason, cause)
	}
	g.drop()
	c.askFor(g.m)
}

// lostByEngine takes in that the engine took the hold back.
func (g *grant) lostByEngine(reason LostReason, cause error) {
	c := g.m.c
	c.lock()
	defer c.unlockInside()
	switch g.phase {
	case requested:
		g.phase = revoked
	case live, abandoned: // of which further holds may go on
		c.lose(g, reason, cause)
	}
}
