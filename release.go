package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// unlockGrace is how long Unlock still waits for the engine's word after its context has ended, so that it also works
	// with a context that had ended before.
	unlockGrace = 40 * time.Millisecond

	// settleAttempt bounds one request of settling, settleFirst and settleMost the pauses between them.
	settleAttempt = 2 * time.Second
	settleFirst   = 20 * time.Millisecond
	settleMost    = time.Second
)

// Unlock ends this hold. The lock becomes free when the owner's last hold on it ends.
//
// If the hold was lost meanwhile, Unlock changes nothing in the engine and returns the *LostError: another owner may be
// inside, so do not retry. A second Unlock returns ErrReleased. ctx bounds only the waiting for the engine's word; Unlock
// works although ctx is already cancelled. If the word does not come in time, Unlock returns an *UnavailableError, and the
// release goes on in the background until it is known or the lease has ended.
//
// It costs one round trip, or none when the lock passes on to another goroutine of this process or the owner has further
// holds. When goroutines of this process wait but others have their turn first, engines that can give back and queue again
// in one step do so in the background: Unlock then returns nil without the engine's word.
func (l *Lease) Unlock(ctx context.Context) error {
	c := l.c
	c.lock()
	l.check(c.now())
	if l.ended != nil {
		err := l.ended
		c.unlock()
		l.owner.remove(l) // a lost hold stays with its owner until here
		return err
	}
	word := l.giveUp()
	c.unlock()
	l.owner.remove(l)
	var err error
	if word != nil {
		err = word(ctx)
	}
	e := l.event()
	e.Err = err
	c.opts.Observer.released(e)
	return err
}

// giveUp ends the hold and gives the lock to whom it belongs next: the owner's other holds, the next in this process, or
// the engine. It returns what asks the engine and waits for its word, to be called exactly once and without Client.mu; nil if there
// is nothing to ask. The caller holds Client.mu.
func (l *Lease) giveUp() (word func(context.Context) error) {
	c, g := l.c, l.g
	l.finish(ErrReleased)
	if len(g.holds) > 0 {
		c.reschedule(g)
		return nil
	}
	if g.passOn() {
		return nil
	}
	q, until := g.q, g.deadline()
	g.drop()
	c.background.Add(1) // under Client.mu, so that Close waits for what is under way
	if c.traits.Local {
		return func(context.Context) error {
			defer c.background.Done()
			err := c.releaseHere(l, until)
			c.lock()
			defer c.unlock()
			if q != nil {
				q.startFetch(nil) // not before: a local engine has no queue in which a place could be kept
			}
			return err
		}
	}
	if q != nil {
		q.startFetch(nil)
	}
	return func(ctx context.Context) error { return c.releaseThere(ctx, l, until) }
}

// passOn gives g, which nobody holds any more, to the next in this process, or back to the engine together with the next
// request. It reports false when g has to be released. The caller holds Client.mu.
func (g *grant) passOn() bool {
	q := g.q
	if q == nil || q.waiters.length == 0 {
		return false
	}
	now := g.c.now()
	switch {
	case !g.passable(now):
		return g.requeue()
	case g.trusted(now):
		g.pass++
		q.serve(g, true)
		return true
	case !g.worthRenewing(now):
		return g.requeue()
	}
	g.between = true
	lease := q.key.lease
	g.c.background.Go(func() { g.renewAndPass(lease) }) // ends with the renewal, which is bounded
	return true
}

// requeue gives g back together with the next request of its queue, if the engine can. The caller holds Client.mu.
func (g *grant) requeue() bool {
	q := g.q
	if q == nil || q.waiters.length == 0 || g.c.requeuer == nil || q.fetch != nil {
		return false
	}
	g.drop()
	q.startFetch(g.release())
	return true
}

// renewAndPass renews g and passes it on: a grant that came by a push is short, and the next in this process wants a full
// lease. That costs a round trip once, and saves one for each pass.
func (g *grant) renewAndPass(lease time.Duration) {
	c := g.c
	err := c.renewNow(c.base, g, lease)
	c.lock()
	defer c.unlockHere()
	g.between = false
	q := g.q
	switch now := c.now(); {
	case g.gone:
	case err == nil && q != nil && q.waiters.length > 0 && g.passable(now) && g.trusted(now):
		g.pass++
		q.serve(g, true)
	case g.requeue():
	default:
		g.drop()
		c.settle(g.release())
		if q != nil {
			q.startFetch(nil)
		}
	}
}

// releaseHere gives the hold back to a local engine in the caller's goroutine. Should the engine not manage it, as with a
// full disk, the background goes on.
func (c *Client) releaseHere(l *Lease, until time.Time) error {
	err := c.d.Release(c.hard, l.g.release())
	if err != nil && !errors.Is(err, ErrLost) {
		c.settleLater(l.g.release())
		return unavailable("unlock", l.key, err)
	}
	return l.released(err, 1, until)
}

// releaseThere gives the hold back over a network: once in the caller's goroutine, and if there is no word by the end of
// ctx, or none at all, in the background until it is known.
func (c *Client) releaseThere(ctx context.Context, l *Lease, until time.Time) error {
	r, attempts := l.g.release(), 0
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(c.hard, settleAttempt)
		stop := context.AfterFunc(ctx, cancel)
		err := c.d.Release(bounded, r)
		stop()
		cancel()
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed) {
			c.background.Done()
			return l.released(err, 1, until)
		}
		attempts = 1
	}
	said := make(chan error, 1)
	go func() { // ends when the word is there, or with c.hard
		defer c.background.Done()
		more, err := c.settleNow(r)
		said <- l.released(err, attempts+more, until)
	}()
	return l.await(ctx, said)
}

// await waits for the engine's word on a release as long as ctx allows, and a moment longer.
func (l *Lease) await(ctx context.Context, said <-chan error) error {
	select {
	case err := <-said:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(unlockGrace)
	defer timer.Stop()
	select {
	case err := <-said:
		return err
	case <-timer.C:
		return unavailable("unlock", l.key, ctx.Err())
	}
}

// released says what the engine's word on a release means to the user.
func (l *Lease) released(err error, attempts int, until time.Time) error {
	if err == nil || !errors.Is(err, ErrLost) {
		return err
	}
	lost := &LostError{Kind: l.key.Kind, Name: l.key.Name, Token: l.token, Reason: LostExpired}
	var told *LostError
	if errors.As(err, &told) {
		lost.Reason, lost.Cause = told.Reason, told.Cause
	}
	found := told != nil && told.Reason != LostExpired // the engine remembers how it ended, so it was not by us
	if attempts > 1 && !found && (until.IsZero() || time.Now().Before(until)) {
		return nil // an earlier attempt had done it, and its reply was lost
	}
	return lost
}

// settle gives back in the background. The caller holds Client.mu.
func (c *Client) settle(r *driver.Release) {
	c.background.Go(func() { _, _ = c.settleNow(r) })
}

// settleLater is settle for callers that do not hold Client.mu but run in a background goroutine, or before Close.
func (c *Client) settleLater(r *driver.Release) {
	c.lock()
	defer c.unlock()
	c.settle(r)
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
		over := c.traits.Ends == driver.Leases && time.Now().After(end)
		if over || !pause(c.hard, wait) {
			c.opts.Logger.Warn("interlock: gave up releasing", "lock", r.Name, "engine", c.traits.Engine, "err", err)
			return attempts, unavailable("unlock", r.Key, err)
		}
		wait = min(2*wait, settleMost)
	}
}
