package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// settle gives back in the background. The caller holds Client.mu.
func (c *Client) settle(r *driver.Release) {
	c.background.Go(func() { _, _ = c.settleNow(r) })
}

// settleNow asks the engine to give back r until it is known that it has, or until Close has waited for long enough. On
// engines with leases it also ends when twice the lease is over: the hold has ended by itself then, whenever its last
// renewal arrived. It returns how often it asked and the last word.
func (c *Client) settleNow(r *driver.Release) (attempts int, err error) {
	end := time.Now().Add(2 * r.Horizon)
	wait := settleFirst
	for {
		attempts++
		ctx, cancel := context.WithTimeout(c.hard, settleAttempt)
		err := c.d.Release(ctx, r)
		cancel()
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed) {
			return attempts, err
		}
		over := c.traits.Lifetime == driver.Leases && time.Now().After(end)
		if over || !pause(c.hard, wait) {
			c.opts.Logger.Warn("interlock: gave up releasing", "lock", r.Name, "engine", c.traits.Engine, "err", err)
			return attempts, c.unsettled(unavailable("unlock", r.Key, err))
		}
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
