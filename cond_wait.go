package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// The steps of Cond.Wait: end the old hold, wait for the signal, make the answer a new hold. An anonymous owner's hold
// ends here before the request is sent, because nothing can refuse it. A named owner's ends when the engine has said
// that it waits, because only the engine knows that owner's other holds.

// condWait is one Wait under way.
type condWait struct {
	c    *Client
	old  *Lease // the hold that is given up
	new  *Lease // the hold that is to come
	g    *grant // of new
	r    driver.Request
	give *driver.Release // of old: the engine ends it in the step in which r begins to wait
	at   trust.Instant

	// Guarded by Client.mu.
	gone   bool       // old has ended in this process
	waited bool       // the engine has said that r waits for a signal
	loss   *LostError // how old would have been lost if it were not being given up; nil if it would not
}

// begin prepares the wait as soon as l has no cooldown any more. It blocks for the rest of a MinHold. If ctx ends
// before that, l is unlocked.
func (c *Cond) begin(ctx context.Context, l *Lease) (*condWait, error) {
	for {
		w, cooldown, err := c.prepare(l)
		switch {
		case errors.Is(err, ErrClosed): // Close may wait for something else before it releases l
			return nil, joined(err, l.yield(ctx))
		case cooldown == 0 || err != nil:
			return w, err
		}
		bounded, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(c.m.client().asks, cancel)
		// The pause also ends if l ends, or with the client; prepare then says which.
		over := pause(l.Context(bounded), cooldown)
		forget()
		cancel()
		if !over && ctx.Err() != nil {
			return nil, errors.Join(l.endedWith(ctx), l.yield(ctx))
		}
	}
}

// yield is Unlock of a hold that may have ended meanwhile, which is no error then.
func (l *Lease) yield(ctx context.Context) error {
	if err := l.Unlock(ctx); !errors.Is(err, ErrReleased) {
		return err
	}
	return nil
}

// prepare ends l in this process, unless only the engine can say whether it may be given up: then l ends with the
// engine's answer. It counts the wait as background and as one of its owner's; over takes that back. If l has a
// cooldown, prepare returns what is left of it and does nothing else.
func (c *Cond) prepare(l *Lease) (w *condWait, cooldown time.Duration, err error) {
	cl := c.m.client()
	cl.lock()
	defer cl.unlock()
	switch {
	case l.m.client() != cl:
		return nil, 0, fmt.Errorf("the lease is of %s %q of another client: wait by the client that took it: %w",
			l.m.key().Kind, l.m.key().Name, ErrNotHeld)
	case l.m.key() != c.m.key():
		return nil, 0, fmt.Errorf("the lease is of %s %q: %w", l.m.key().Kind, l.m.key().Name, ErrNotHeld)
	}
	now := cl.now()
	if err := l.mayWait(now); err != nil {
		return nil, 0, err
	}
	if cooldown := l.g.cooldown(); cooldown > 0 {
		return nil, cooldown, nil
	}
	w = &condWait{c: cl, old: l, new: l.m.newLease(l.owner), give: l.g.releaseRequest(), at: now}
	w.r = l.m.request(cl.newID(), l.owner)
	w.r.Tokens = 1
	w.g = l.m.newGrant(w.r.ID)
	w.r.Lost = w.g.lostByEngine
	cl.background.Add(1)
	l.owner.waits.Add(1)
	// The engine may refuse with ErrNested. Until it has answered, l is only marked: see condWait.overtaken.
	if l.owner.named {
		l.listening().condWait = w
	} else {
		w.giveUp(now)
	}
	return w, 0, nil
}

// over takes back what prepare has counted.
func (w *condWait) over() {
	w.old.owner.waits.Add(-1)
	w.c.background.Done()
}

// mayWait says why l cannot be given up for a wait, or returns nil. The caller holds Client.mu.
func (l *Lease) mayWait(now trust.Instant) error {
	l.check(now)
	switch err := l.ended(); {
	case err != nil && l.m.client().closed:
		return ErrClosed
	case err != nil:
		return errors.Join(ErrNotHeld, err)
	case l.listeners != nil && l.listeners.condWait != nil:
		return fmt.Errorf("it is being given up by another wait: %w", ErrNotHeld)
	case l.hasOthers():
		return ErrNested
	case l.g.Phase == grants.Abandoned:
		return fmt.Errorf("a hold beside it was abandoned, and the lock is left to run out: unlock this one: %w",
			ErrNested)
	case l.m.client().closed:
		return ErrClosed
	}
	return nil
}

// giveUp ends the old hold in this process. It may be called when the hold has ended already. The caller holds
// Client.mu.
func (w *condWait) giveUp(now trust.Instant) {
	w.gone = true
	if w.old.ended() == nil {
		w.old.release(now)
		w.old.g.drop()
		w.c.afterUnlock(func() { w.old.owner.remove(w.old); w.old.tellReleased(nil) })
		return
	}
	w.old.owner.remove(w.old) // it ended while the engine was asked, and nobody will unlock it
}

// overtaken ends the old hold as released although this process finds it lost, while the engine is asked to end it. Its
// owner has given it up, so nobody has lost anything. Most likely the engine has ended it, and its answer is on the
// way; if not, Wait reports what became of it. The caller holds Client.mu.
func (w *condWait) overtaken(lost *LostError) {
	w.loss, w.gone = lost, true
	w.old.release(w.c.now())
	w.c.afterUnlock(func() { w.old.owner.remove(w.old); w.old.tellReleased(nil) })
}

// parked is called by the driver, in any goroutine, when the engine has ended the old hold. Waiters of this process ask
// the engine from then on: before, it still counted the lock as held.
func (w *condWait) parked() {
	w.c.lock()
	defer w.c.unlockInside()
	w.waited = true
	w.giveUp(w.c.now())
	w.c.askFor(w.old.m)
}

// failed settles both parts of the wait, unless the outcome is known because the engine refused with ErrNested, and
// returns what err means.
func (w *condWait) failed(ctx context.Context, err error, ended bool) error {
	key := w.r.Key
	w.c.lock()
	defer w.c.unlock()
	if errors.Is(err, ErrNested) && driver.IsDefinite(err) && !w.gone {
		w.old.listeners.condWait = nil
		return wrap("wait for the condition of", key, err)
	}
	w.giveUp(w.c.now())
	w.c.settle(w.old.m, w.give)
	w.g.settle(true)
	w.c.askFor(w.old.m)
	switch {
	case errors.Is(err, ErrNested) && w.loss != nil: // everything is as it was, except that the hold is lost
		return w.loss
	case ctx.Err() != nil && !w.waited && errors.Is(err, ErrUnavailable):
		return unavailable("wait for the condition of", key, errors.Join(w.old.endedWith(ctx), err))
	case ctx.Err() != nil:
		return wrap("wait for the condition of", key, w.old.endedWith(ctx))
	case ended || w.c.closed:
		return wrap("wait for the condition of", key, ErrClosed)
	case errors.Is(err, ErrLost) || driver.IsDefinite(err):
		return wrap("wait for the condition of", key, err)
	}
	return unavailable("wait for the condition of", key, err)
}

// granted makes the engine's answer a hold.
func (w *condWait) granted(ctx context.Context, answer driver.Grant) (*Lease, error) {
	c := w.c
	c.lock()
	now := c.now()
	if !w.gone { // the engine has not called parked, but it has ended the hold
		w.giveUp(now)
	}
	if c.closed || w.g.Phase == grants.Revoked || c.tooLate(answer, now) {
		w.g.settle(true) // an undo, so that the signal goes on to the next waiter
		defer c.unlock()
		if c.closed {
			return nil, wrap("wait for the condition of", w.r.Key, ErrClosed)
		}
		return nil, &LostError{Kind: w.r.Kind, Name: w.r.Name, Token: answer.Token, Reason: LostExpired}
	}
	if old := c.passing(w.new.m); old != nil {
		old.Alone = true // its loss has not been reported yet, but the engine gave the lock to w
	}
	w.g.taken(answer, now)
	w.g.Alone = true // waiters of this process are in the engine's queue already
	w.g.admit(w.new, w.at, now, false)
	w.g.admitOthers()
	c.unlock()
	w.new.tellAcquired(ctx, Event{Cond: true})
	return w.new, nil
}
