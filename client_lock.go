package interlock

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Client.mu, and the effects: what is done when it has been given up. Under it the state changes, at one instant, and
// nothing else happens: no engine, no goroutine, no user's code. Both may call back into the client.

// lock takes Client.mu, which guards the queues, grants, leases and the scheduler of the client. Nothing blocks under
// it. owner.mu is a leaf, which may be taken under it.
func (c *Client) lock() {
	c.mu.Lock()
	c.instant = 0
}

// now returns the instant at which everything under this Client.mu happens, and notices if the machine was suspended.
// The caller holds Client.mu.
func (c *core) now() trust.Instant {
	if c.instant == 0 {
		c.instant = c.env.Clock.Now()
		if c.watching {
			c.env.Suspensions.Look(c.instant)
		}
	}
	return c.instant
}

// verb says what an effect does.
type verb uint8

const (
	cancelContexts verb = iota // contexts, with cause; it runs the user's functions (context.AfterFunc)
	sendRelease                // give, of m, again and again until its outcome is known
	sendRequest                // fetch
	sendRenewals               // batch
	renewForPass               // grant
	releaseAfter               // late, when its time has come
	finishRelease              // left, which giveUp has counted
	callUser                   // the Observer or the log, which may be slow although they must not be
)

// effect is one thing to do. What runs in the background is counted when it is emitted, so that Close waits for it.
type effect struct {
	verb     verb
	m        *lock
	give     *driver.Release
	fetch    *fetch
	grant    *grant
	late     *lateRelease
	after    time.Duration
	batch    []pendingRenewal
	contexts []*ending
	cause    error
	left     pendingRelease
	call     func()
}

// emit has e done as soon as Client.mu has been given up. The caller holds Client.mu.
func (c *core) emit(e effect) {
	switch e.verb {
	case cancelContexts, callUser:
	default:
		c.background.Add(1)
	}
	c.effects = append(c.effects, e)
}

// afterUnlock has f, which calls the user's code, called. The caller holds Client.mu.
func (c *core) afterUnlock(f func()) { c.emit(effect{verb: callUser, call: f}) }

// settle has r, of m, released in the background. The caller holds Client.mu.
func (c *core) settle(m *lock, r *driver.Release) {
	c.emit(effect{verb: sendRelease, m: m, give: r})
}

// unlock gives Client.mu up and then does the effects, in the caller's goroutine. It is for goroutines of the user.
func (c *Client) unlock() {
	todo := c.take()
	c.mu.Unlock()
	c.perform(todo)
	callEach(todo)
}

// unlockInside is unlock for the scheduler and for a driver's goroutines. A slow observer must not delay the renewals
// and losses of other holds, so the user's code gets a goroutine of its own.
func (c *Client) unlockInside() {
	todo := c.take()
	calls := false
	for i := range todo {
		calls = calls || todo[i].verb == callUser
	}
	if calls {
		if !c.closed {
			c.background.Go(func() { callEach(todo) })
		} else { // Close waits for no new goroutine
			defer callEach(todo)
		}
	}
	c.mu.Unlock()
	c.perform(todo)
}

// take empties the list of effects. The caller holds Client.mu.
func (c *Client) take() []effect {
	todo := c.effects
	c.effects = nil
	return todo
}

// callEach calls the user's code.
func callEach(todo []effect) {
	for i := range todo {
		if todo[i].verb == callUser {
			todo[i].call()
		}
	}
}

// perform does all else. Holders are told before the releases that follow them in todo: otherwise another owner could
// get in before. What blocks gets a goroutine of its own.
func (c *Client) perform(todo []effect) {
	for i := range todo {
		switch e := &todo[i]; e.verb {
		case cancelContexts:
			for _, w := range e.contexts {
				w.cancel(e.cause)
			}
		case callUser:
		default:
			go func() { // ends with the engine's word, or with Close
				defer c.background.Done()
				c.run(e)
			}()
		}
	}
}

// run does one effect that blocks.
func (c *Client) run(e *effect) {
	switch e.verb {
	case sendRelease:
		_, _ = c.settleNow(e.m, e.give)
	case sendRequest:
		e.fetch.run()
	case sendRenewals:
		c.renewBatch(e.batch)
	case renewForPass:
		e.grant.renewAndPass()
	case finishRelease:
		_ = e.left.await(c.hard, unlockGrace)
	case releaseAfter:
		c.releaseWhenDue(e.late, e.after)
	}
}
