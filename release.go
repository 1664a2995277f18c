package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// unlockGrace is how long Unlock waits for the engine's word if its context had ended before, so that it works with
// such a one too.
const unlockGrace = 40 * time.Millisecond

// Unlock ends this hold. The lock becomes free when the owner's last hold on it ends.
//
// If the hold was lost meanwhile, Unlock changes nothing in the engine and returns the *LostError: another owner may be
// inside, so do not retry. The error of a second Unlock matches ErrReleased. ctx bounds only the waiting for the
// engine's word; Unlock works although ctx is already cancelled. If the word does not come in time, Unlock returns an
// *UnavailableError, and if the engine refuses a *RefusedError at once; the release goes on in the background until it
// is known, or the hold must have ended by itself (see [driver.Driver]).
//
// It costs one round trip, or none when the lock passes on to another goroutine of this process or the owner has
// further holds. When goroutines of this process wait but others have their turn first, engines that can give back and
// queue again in one step do so in the background: Unlock then returns nil without the engine's word.
func (l *Lease) Unlock(ctx context.Context) error {
	if err := ready(l.made(), ctx); err != nil {
		return err
	}
	c := l.m.c
	c.lock()
	now := c.now()
	l.check(now)
	if err := l.ended(); err != nil {
		c.unlock()
		l.owner.remove(l) // a lost hold stays with its owner until here
		return wrap("unlock", l.m.key(), err)
	}
	var read pendingRelease // of an upgraded hold
	if l.upgradePair != nil {
		read = l.splitPair().giveUp(now)
	}
	write := l.giveUp(now)
	c.unlock()
	l.owner.remove(l)
	err := awaitBoth(ctx, write, read)
	l.tellReleased(err)
	return err
}

// awaitBoth awaits the releases of the write of an upgraded hold and of its read, which is none for another hold,
// within one grace.
func awaitBoth(ctx context.Context, write, read pendingRelease) error {
	if read.none() {
		return write.await(ctx, unlockGrace)
	}
	start, grace, ended := time.Now(), unlockGrace, ctx.Err() != nil
	err := write.await(ctx, grace)
	if ended { // else the grace has not begun before
		grace -= time.Since(start)
	}
	return errors.Join(err, read.await(ctx, grace))
}

// pendingRelease is a release on which the engine's word is awaited. The zero value is none: nothing is to be given
// back.
type pendingRelease struct {
	l     *Lease
	until instant       // when the trust window would have ended
	keep  time.Duration // for how long the engine is to keep the lock closed
}

func (w pendingRelease) none() bool { return w.l == nil }

func (w pendingRelease) release() *driver.Release {
	r := w.l.g.release()
	r.Keep = w.keep
	return r
}

// giveUp ends the hold and gives the lock to whom it belongs next: the owner's other holds, the next in this process,
// or the engine. The caller holds Client.mu and, when it has given it up, awaits the engine's word exactly once.
func (l *Lease) giveUp(now instant) pendingRelease {
	g := l.g
	c := g.m.c
	l.release(now)
	if g.holds.first != nil {
		c.reschedule(g)
		return pendingRelease{}
	}
	if g.phase == abandoned {
		g.leave()
		return pendingRelease{}
	}
	if g.passOn(now) || g.retain(now) {
		return pendingRelease{}
	}
	w := pendingRelease{l: l, until: g.deadline(), keep: g.keep()}
	g.drop()
	c.background.Add(1) // under Client.mu, so that Close waits for what is under way
	if c.traits.Local {
		return w
	}
	c.askFor(g.m)
	return w
}

// passOn gives g, which nobody holds any more, to the next in this process, or back to the engine together with the
// next request. It reports false when g has to be released. The caller holds Client.mu.
func (g *grant) passOn(now instant) bool {
	if g.cooldown() > 0 {
		return g.keepForCooldown()
	}
	q := g.waitingQueue()
	if q == nil {
		return false
	}
	switch {
	case !g.mayPass(now):
		return g.requeue()
	case g.trustedEnough(now):
		g.pass++
		q.serve(g, true)
		return true
	case !g.worthRenewing(now):
		return g.requeue()
	}
	g.between = true
	g.m.c.background.Go(g.renewAndPass) // ends with the renewal, which is bounded
	return true
}

// waitingQueue returns the queue that g passes on to, or nil if nobody waits there. The caller holds Client.mu.
func (g *grant) waitingQueue() *queue {
	q := g.m.c.queues[g.m.queueKey()]
	if g.alone || q == nil || q.waiters.first == nil {
		return nil
	}
	return q
}

// requeue gives g back together with the next request of its queue, if the engine can. The caller holds Client.mu.
func (g *grant) requeue() bool {
	q := g.waitingQueue()
	if q == nil || g.m.c.requeuer == nil || q.fetch != nil {
		return false
	}
	g.drop()
	q.startFetch(g.release())
	return true
}

// renewAndPass renews g and passes it on: a grant that came by a push is short, and the next in this process wants a
// full lease. That costs a round trip once, and saves one for each pass.
func (g *grant) renewAndPass() {
	c := g.m.c
	err := c.renewNow(c.base, g, g.m.p.lease)
	c.lock()
	defer c.unlockInside()
	g.between = false
	q := g.waitingQueue()
	switch now := c.now(); {
	case g.phase == gone:
	case err == nil && q != nil && g.mayPass(now) && g.trustedEnough(now):
		g.pass++
		q.serve(g, true)
	case g.requeue():
	default:
		g.drop()
		c.settle(g.m, g.release())
		c.askFor(g.m)
	}
}

// releaseLocal gives the hold back to a local engine in the caller's goroutine. Should the engine not manage it, as
// with a full disk, the background goes on.
func (w pendingRelease) releaseLocal() error {
	l, c := w.l, w.l.m.c
	defer c.background.Done() // added by giveUp
	err := l.g.releaseLocal(w.keep)
	c.lock()
	defer c.unlock()
	c.askFor(l.g.m) // not before: a local engine has no queue in which a place could be kept
	if err != nil && !errors.Is(err, ErrLost) {
		c.settle(l.m, w.release())
		return unavailable("unlock", l.m.key(), err)
	}
	return l.confirmed(err, 1, w.until)
}

// releaseRemote gives the hold back over a network: once in the caller's goroutine, and if there is no word by the end
// of ctx, or none at all, in the background until it is known. If ctx has ended before, it is waited for that grace.
func (w pendingRelease) releaseRemote(ctx context.Context, grace time.Duration) error {
	l, c := w.l, w.l.m.c
	r, attempts := w.release(), 0
	var refused error
	if ctx.Err() == nil {
		bounded := callContext{user: ctx, base: c.hard, until: time.Now().Add(settleAttempt)}
		err := c.d.Release(&bounded, r)
		bounded.end()
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, ErrClosed) {
			c.background.Done()
			return l.confirmed(err, 1, w.until)
		}
		attempts, grace = 1, 0 // the engine has had its time
		if driver.Refusal(err) != nil {
			refused = unavailable("unlock", l.m.key(), err)
		}
	}
	said := make(chan error, 1)
	go func() { // ends when the word is there, or with c.hard
		defer c.background.Done()
		more, err := c.settleNow(l.m, r)
		said <- l.confirmed(err, attempts+more, w.until)
	}()
	if refused != nil { // it would say the same again, unless somebody mends what is wrong in time
		return refused
	}
	return l.awaitRelease(ctx, said, grace)
}

// await asks the engine and waits for its word as long as ctx allows, or for the grace if ctx has ended before.
func (w pendingRelease) await(ctx context.Context, grace time.Duration) error {
	switch {
	case w.none():
		return nil
	case w.l.m.c.traits.Local:
		return w.releaseLocal()
	default:
		return w.releaseRemote(ctx, grace)
	}
}

// awaitRelease waits for the engine's word on a release as long as ctx allows, and for the grace after that.
func (l *Lease) awaitRelease(ctx context.Context, said <-chan error, grace time.Duration) error {
	select {
	case err := <-said:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case err := <-said:
		return err
	case <-timer.C:
		return unavailable("unlock", l.m.key(), ctx.Err())
	}
}

// confirmed says what the engine's word on a release means to the user.
func (l *Lease) confirmed(err error, attempts int, until instant) error {
	if err == nil || !errors.Is(err, ErrLost) {
		return err
	}
	lost := l.lostError(LostExpired, nil)
	var told *LostError
	if errors.As(err, &told) {
		lost.Reason, lost.Cause = told.Reason, told.Cause
	}
	if lost.Reason == LostAdopted {
		return wrap("unlock", l.m.key(), ErrAdopted)
	}
	found := told != nil && told.Reason != LostExpired // the engine remembers how it ended, so it was not by us
	if attempts > 1 && !found && l.m.c.reading() < until {
		return nil // an earlier attempt had done it, and its reply was lost
	}
	return lost
}
