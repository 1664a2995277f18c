package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// condWait is one Wait under way.
type condWait struct {
	c    *Client
	old  *Lease // what is given up
	new  *Lease // what is to come
	g    *grant // of new
	r    driver.Request
	give *driver.Release
	at   instant

	// Guarded by Client.mu.
	gone   bool       // old has ended in this process
	waited bool       // the engine has said that it waits for a signal
	loss   *LostError // how old would have been lost if it were not being given up; nil if it would not
}

// begin prepares the wait, when l is not to be kept from others any more. If ctx ends before that, l is unlocked.
func (c *Cond) begin(ctx context.Context, l *Lease) (*condWait, error) {
	for {
		w, cooldown, err := c.prepare(l)
		switch {
		case errors.Is(err, ErrClosed): // and Close may wait for something before it gives l back
			return nil, joined(err, l.yield(ctx))
		case cooldown == 0 || err != nil:
			return w, err
		}
		bounded, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(c.m.c.asks, cancel)
		over := pause(l.Context(bounded), cooldown) // or l has ended, or the client, which prepare sees
		forget()
		cancel()
		if !over && ctx.Err() != nil {
			return nil, errors.Join(l.endedWith(ctx), l.yield(ctx))
		}
	}
}

// yield is Unlock of what may have ended meanwhile, which is no error then.
func (l *Lease) yield(ctx context.Context) error {
	if err := l.Unlock(ctx); !errors.Is(err, ErrReleased) {
		return err
	}
	return nil
}

// prepare ends l in this process, unless only the engine can say whether it may be given up: then l ends when it has.
// It counts the wait as background and as one of its owner's. If l is to be kept from others for a cooldown, it says so
// and does nothing else.
func (c *Cond) prepare(l *Lease) (w *condWait, cooldown time.Duration, err error) {
	cl := c.m.c
	cl.lock()
	defer cl.unlock()
	switch {
	case l.m.c != cl:
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
	w = &condWait{c: cl, old: l, new: l.m.newLease(l.owner), give: l.g.release(), at: now}
	w.r = l.m.request(cl.newID(), l.owner)
	w.r.Tokens = 1
	w.g = &grant{m: l.m, id: w.r.ID, asked: l.m.p.lease, index: -1}
	w.r.Lost = w.g.lostByEngine
	cl.background.Add(1)
	l.owner.waits.Add(1)
	if l.owner.named {
		l.endListeners().condWait = w
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

// mayWait says why l cannot be given up for a wait. The caller holds Client.mu.
func (l *Lease) mayWait(now instant) error {
	l.check(now)
	switch err := l.ended(); {
	case err != nil && l.m.c.closed:
		return ErrClosed
	case err != nil:
		return errors.Join(ErrNotHeld, err)
	case l.listeners != nil && l.listeners.condWait != nil:
		return fmt.Errorf("it is being given up by another wait: %w", ErrNotHeld)
	case l.hasOthers():
		return ErrNested
	case l.g.phase == abandoned:
		return fmt.Errorf("a hold beside it was abandoned, and the lock is left to run out: unlock this one: %w",
			ErrNested)
	case l.m.c.closed:
		return ErrClosed
	}
	return nil
}

// hasOthers reports whether l's owner has another live hold of the same lock in this process. The caller holds
// Client.mu.
func (l *Lease) hasOthers() bool {
	return l.owner.first(l.m.c, l.m.key(), func(other *Lease) bool { return other != l && other.ended() == nil }) != nil
}

// giveUp ends the old hold in this process. The caller holds Client.mu.
func (w *condWait) giveUp(now instant) {
	w.gone = true
	if w.old.ended() == nil {
		w.old.release(now)
		w.old.g.drop()
		w.c.afterUnlock(func() { w.old.owner.remove(w.old); w.old.tellReleased(nil) })
		return
	}
	w.old.owner.remove(w.old) // it ended while the engine was asked, and nobody will unlock it
}

// overtaken ends the old hold, which is lost by what this process knows, while the engine is asked to end it. Its owner
// has given it up, so nobody has lost anything: most likely the engine has ended it, and its answer is on the way. If
// not, Wait says what has become of it. The caller holds Client.mu.
func (w *condWait) overtaken(lost *LostError) {
	w.loss, w.gone = lost, true
	w.old.release(w.c.now())
	w.c.afterUnlock(func() { w.old.owner.remove(w.old); w.old.tellReleased(nil) })
}

// parked takes in that the engine has ended the old hold: those who wait for it in this process ask now.
func (w *condWait) parked() {
	w.c.lock()
	defer w.c.unlockInside()
	w.waited = true
	w.giveUp(w.c.now())
	w.c.askFor(w.old.m)
}

// failed has both parts of the wait settled, and says what err means. The outcome of one that ErrNested has refused is
// known.
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
	case errors.Is(err, ErrNested) && w.loss != nil: // it is as it was, except that it is lost
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
	if !w.gone { // the engine has not said so, but then it has
		w.giveUp(now)
	}
	if c.closed || w.g.phase == revoked || w.g.tooLate(answer, now) {
		w.g.settle(true) // so that the signal goes on
		defer c.unlock()
		if c.closed {
			return nil, wrap("wait for the condition of", w.r.Key, ErrClosed)
		}
		return nil, &LostError{Kind: w.r.Kind, Name: w.r.Name, Token: answer.Token, Reason: LostExpired}
	}
	if old := c.passing(w.new.m); old != nil {
		old.alone = true // the engine gave the lock to us, so that one is over although nobody has told us yet
	}
	w.g.taken(answer, now)
	w.g.alone = true // who stands in line here is in the engine's queue already
	w.g.admit(w.new, w.at, now, false)
	w.g.admitOthers()
	c.unlock()
	w.new.tellAcquired(ctx, Event{Cond: true})
	return w.new, nil
}
