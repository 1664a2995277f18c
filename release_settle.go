package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// settleAttempt bounds one request of settling, settleFirst and settleMost the pauses between them.
	settleAttempt = 2 * time.Second
	settleFirst   = 20 * time.Millisecond
	settleMost    = time.Second
)

// settle gives r, of m, back in the background. The caller holds Client.mu.
func (c *Client) settle(m *Mutex, r *driver.Release) {
	c.background.Go(func() { _, _ = c.settleNow(m, r) })
}

// shortestHorizon is for how long copies of a request are taken to be under way at least, however short its lease is.
const shortestHorizon = 10 * time.Second

// endsByItself reports after how long nothing can be left of r that its release would end, as [driver.Driver] says. It
// reports false if something may be left for ever.
func (c *Client) endsByItself(r *driver.Release) (after time.Duration, ends bool) {
	copies, lease, place := max(r.Horizon, shortestHorizon), r.Horizon, c.traits.QueueTimeout
	if c.traits.Lifetime != driver.Leases || r.Undo && place == 0 {
		return 0, false
	}
	return copies + max(lease, place), true
}

// settleNow asks the engine to give back r, of m, until it is known that it has, until nothing can be left of r, or
// until Close has waited for long enough. It returns how often it asked and the last word, and tells the Observer.
func (c *Client) settleNow(m *Mutex, r *driver.Release) (attempts int, err error) {
	if o := c.opts.Observer; o.Settling != nil || o.Settled != nil {
		e := m.event(nil)
		e.Undo = r.Undo
		c.tell("Settling", o.Settling, e)
		defer func() {
			if !isSettled(err) {
				e.Err = err
			}
			c.tell("Settled", o.Settled, e)
		}()
	}
	return c.askUntilSettled(r)
}

// isSettled reports whether err, of a release, says that nothing is left.
func isSettled(err error) bool {
	return err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed)
}

// askUntilSettled is settleNow without the Observer.
func (c *Client) askUntilSettled(r *driver.Release) (attempts int, err error) {
	after, ends := c.endsByItself(r)
	start := time.Now()
	wait, doubt := settleFirst, false
	for {
		attempts++
		ctx, cancel := context.WithTimeout(c.hard, settleAttempt)
		err := c.d.Release(ctx, r)
		cancel()
		if isSettled(err) {
			return attempts, err
		}
		over := ends && time.Since(start) >= after
		if over || !pause(c.hard, wait) {
			c.opts.Logger.Warn("interlock: gave up releasing", "lock", r.Name, "engine", c.traits.Engine, "err", err)
			return attempts, c.unsettled(doubtful("unlock", r.Key, err, doubt))
		}
		doubt = doubt || leavesDoubt(err)
		wait = min(2*wait, settleMost)
	}
}

// unsettled notes, for Close, that something was not given back, and returns what it is told.
func (c *Client) unsettled(err error) error {
	c.lock()
	defer c.unlock()
	if c.closed {
		c.unconfirmed = append(c.unconfirmed, err)
	}
	return err
}

// settle gives back what may have been granted. The caller holds Client.mu.
func (g *grant) settle(undo bool) {
	give := g.release()
	give.Undo = undo
	g.m.c.settle(g.m, give)
}
