package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// Settling: a release or an undo is repeated in the background until its outcome is known, until nothing can be left of
// it, or until Close gives up. It follows release.go and acquire_retry.go. Without it each lost reply could leave a
// lock closed: for its lease, or until the session ends.

const (
	// settleAttempt bounds one request of settling. settleFirst and settleMost bound the pauses between two, which
	// double each time.
	SettleAttempt = 2 * time.Second
	settleFirst   = 20 * time.Millisecond
	SettleMost    = time.Second
)

// shortestHorizon is how long a copy of a request is taken to be under way at least, however short its lease is.
const ShortestHorizon = 10 * time.Second

// endsByItself returns after how long nothing can be left that r would end, as [driver.Driver] says. By then no copy of
// the acquisition can arrive any more, and what the last copy took has run out. It reports false if something may be
// left for ever, on engines without leases or whose queue never forgets a waiter.
func (c *Client) endsByItself(r *driver.Release) (after time.Duration, ends bool) {
	copies, lease, place := max(r.Horizon, ShortestHorizon), r.Horizon, c.Machine.Traits.QueueTimeout
	if !c.Machine.HasLeases() || r.Undo && place == 0 {
		return 0, false
	}
	return copies + max(lease, place), true
}

// settleNow asks the engine to release r, of m, until it is known to be done, until nothing can be left of r, or until
// Close gives up. It returns the last answer, and in doubt whether a copy before it may have been carried out. It tells
// the Observer, and blocks for up to endsByItself.
func (c *Client) SettleNow(m *core.Lock, r *driver.Release) (doubt bool, err error) {
	if o := c.Config.Observer; o.Settling != nil || o.Settled != nil {
		e := factsOf(m, nil)
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

// isSettled reports whether err, of a release, says that nothing is left: released, not there, or the driver closed.
func isSettled(err error) bool {
	return err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrClosed)
}

// askUntilSettled is settleNow without the Observer. Only c.hard ends it early, never a caller's context: the caller
// may be gone for long.
func (c *Client) askUntilSettled(r *driver.Release) (doubt bool, err error) {
	after, ends := c.endsByItself(r)
	start := time.Now()
	open := false // some copy has got no answer, so a refusal of the last one is not the whole truth
	for wait := settleFirst; ; wait = min(2*wait, SettleMost) {
		ctx, cancel := context.WithTimeout(c.releaseCtx, SettleAttempt)
		err := c.Driver.Release(ctx, r)
		cancel()
		if isSettled(err) {
			return doubt, err
		}
		over := ends && time.Since(start) >= after
		if over || !Pause(c.releaseCtx, wait) {
			c.Config.Logger.Warn("interlock: gave up releasing", "lock", r.Name, "engine", c.Machine.Traits.Engine, "err", err)
			return doubt, c.unsettled(doubtful("unlock", r.Key, err, open))
		}
		doubt, open = doubt || mayHaveRun(err), open || leavesDoubt(err)
	}
}

// unsettled notes for Close's error that something was not released, and returns err.
func (c *Client) unsettled(err error) error {
	c.Lock()
	defer c.Unlock()
	if c.Machine.Closed {
		c.unconfirmed = append(c.unconfirmed,
			fmt.Errorf("%w: the lock becomes free when its %s has ended", err, c.Machine.Traits.Lifetime))
	}
	return err
}
