package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// The steps of Cond.Wait: end the old hold, wait for the signal, make the answer a new hold. An anonymous owner's hold
// ends here before the request is sent, because nothing can refuse it. A named owner's ends when the engine has said
// that it waits, because only the engine knows that owner's other holds.

// condWait is one Wait under way.
type condWait struct {
	c    *Client
	old  *core.Hold       // the hold that is given up
	new  *core.Hold       // the hold that is to come
	g    *core.EngineHold // of new
	r    driver.Request
	give *driver.Release // of old: the engine ends it in the step in which r begins to wait
	at   trust.Instant

	// Guarded by Machine.Mu.
	gone   bool       // old has ended in this process
	waited bool       // the engine has said that r waits for a signal
	loss   *LostError // how old would have been lost if it were not being given up; nil if it would not
}

// beginCondWait prepares the wait as soon as l has no cooldown any more. It blocks for the rest of a MinHold. If ctx ends
// before that, l is unlocked.
func beginCondWait(ctx context.Context, m *core.Lock, l *core.Hold) (*condWait, error) {
	for {
		w, cooldown, err := prepareCondWait(m, l)
		switch {
		case errors.Is(err, ErrClosed): // Close may wait for something else before it releases l
			return nil, joined(err, yieldHold(ctx, l))
		case cooldown == 0 || err != nil:
			return w, err
		}
		bounded, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(clientOfLock(m).asks, cancel)
		// The pause also ends if l ends, or with the client; prepare then says which.
		over := pause(holdContext(bounded, l), cooldown)
		forget()
		cancel()
		if !over && ctx.Err() != nil {
			return nil, errors.Join(endedWith(ctx, l), yieldHold(ctx, l))
		}
	}
}

// yieldHold is Unlock of a hold that may have ended meanwhile, which is no error then.
func yieldHold(ctx context.Context, l *core.Hold) error {
	if err := unlock(ctx, l); !errors.Is(err, ErrReleased) {
		return err
	}
	return nil
}

// prepareCondWait ends l in this process, unless only the engine can say whether it may be given up: then l ends with the
// engine's answer. It counts the wait as background and as one of its owner's; over takes that back. If l has a
// cooldown, prepare returns what is left of it and does nothing else.
func prepareCondWait(m *core.Lock, l *core.Hold) (w *condWait, cooldown time.Duration, err error) {
	cl := clientOfLock(m)
	cl.lock()
	defer cl.unlock()
	switch {
	case clientOfLock(l.Lock) != cl:
		return nil, 0, fmt.Errorf("the lease is of %s %q of another client: wait by the client that took it: %w",
			l.Lock.Key().Kind, l.Lock.Key().Name, ErrNotHeld)
	case l.Lock.Key() != m.Key():
		return nil, 0, fmt.Errorf("the lease is of %s %q: %w", l.Lock.Key().Kind, l.Lock.Key().Name, ErrNotHeld)
	}
	now := cl.core.Now()
	if err := mayWait(l, now); err != nil {
		return nil, 0, err
	}
	if cooldown := l.Engine.Cooldown(); cooldown > 0 {
		return nil, cooldown, nil
	}
	w = &condWait{c: cl, old: l, new: l.Lock.NewHold(l.Owner), give: l.Engine.ReleaseRequest(), at: now}
	w.r = driverRequest(l.Lock, cl.newID(), l.Owner)
	w.r.Tokens = 1
	w.g = l.Lock.NewEngineHold(w.r.ID)
	w.r.Lost = lossOf(w.g)
	cl.core.Background.Add(1)
	l.Owner.Waits.Add(1)
	// The engine may refuse with ErrNested. Until it has answered, l is only marked: see condWait.EndedMeanwhile.
	if l.Owner.Named {
		l.Listening().CondWait = w
	} else {
		w.giveUp(now)
	}
	return w, 0, nil
}

// over takes back what prepare has counted.
func (w *condWait) over() {
	w.old.Owner.Waits.Add(-1)
	w.c.core.Background.Done()
}

// mayWait says why l cannot be given up for a wait, or returns nil. The caller holds Machine.Mu.
func mayWait(l *core.Hold, now trust.Instant) error {
	l.Check(now)
	switch err := l.Ended(); {
	case err != nil && clientOfLock(l.Lock).core.Closed:
		return ErrClosed
	case err != nil:
		return errors.Join(ErrNotHeld, err)
	case l.Listeners != nil && l.Listeners.CondWait != nil:
		return fmt.Errorf("it is being given up by another wait: %w", ErrNotHeld)
	case l.HasOthers():
		return ErrNested
	case l.Engine.Phase == grants.Abandoned:
		return fmt.Errorf("a hold beside it was abandoned, and the lock is left to run out: unlock this one: %w",
			ErrNested)
	case clientOfLock(l.Lock).core.Closed:
		return ErrClosed
	}
	return nil
}

// giveUp ends the old hold in this process. It may be called when the hold has ended already. The caller holds
// Machine.Mu.
func (w *condWait) giveUp(now trust.Instant) {
	w.gone = true
	if w.old.Ended() == nil {
		w.old.Release(now)
		w.old.Engine.Forget()
		w.c.core.AfterUnlock(func() { w.old.Owner.Remove(w.old); tellReleased(w.old, nil) })
		return
	}
	w.old.Owner.Remove(w.old) // it ended while the engine was asked, and nobody will unlock it
}

// EndedMeanwhile ends the old hold as released although this process finds it lost, while the engine is asked to end it. Its
// owner has given it up, so nobody has lost anything. Most likely the engine has ended it, and its answer is on the
// way; if not, Wait reports what became of it. The caller holds Machine.Mu.
func (w *condWait) EndedMeanwhile(lost *LostError) {
	w.loss, w.gone = lost, true
	w.old.Release(w.c.core.Now())
	w.c.core.AfterUnlock(func() { w.old.Owner.Remove(w.old); tellReleased(w.old, nil) })
}

// parked is called by the driver, in any goroutine, when the engine has ended the old hold. Waiters of this process ask
// the engine from then on: before, it still counted the lock as held.
func (w *condWait) parked() {
	w.c.lock()
	defer w.c.unlockInside()
	w.waited = true
	w.giveUp(w.c.core.Now())
	w.c.core.AskFor(w.old.Lock)
}

// failed settles both parts of the wait, unless the outcome is known because the engine refused with ErrNested, and
// returns what err means.
func (w *condWait) failed(ctx context.Context, err error, ended bool) error {
	key := w.r.Key
	w.c.lock()
	defer w.c.unlock()
	if errors.Is(err, ErrNested) && driver.IsDefinite(err) && !w.gone {
		w.old.Listeners.CondWait = nil
		return wrap("wait for the condition of", key, err)
	}
	w.giveUp(w.c.core.Now())
	w.c.core.ReleaseInBackground(w.old.Lock, w.give)
	w.g.ReleaseInBackground(true)
	w.c.core.AskFor(w.old.Lock)
	switch {
	case errors.Is(err, ErrNested) && w.loss != nil: // everything is as it was, except that the hold is lost
		return w.loss
	case ctx.Err() != nil && !w.waited && errors.Is(err, ErrUnavailable):
		return unavailable("wait for the condition of", key, errors.Join(endedWith(ctx, w.old), err))
	case ctx.Err() != nil:
		return wrap("wait for the condition of", key, endedWith(ctx, w.old))
	case ended || w.c.core.Closed:
		return wrap("wait for the condition of", key, ErrClosed)
	case errors.Is(err, ErrLost) || driver.IsDefinite(err):
		return wrap("wait for the condition of", key, err)
	}
	return unavailable("wait for the condition of", key, err)
}

// granted makes the engine's answer a hold.
func (w *condWait) granted(ctx context.Context, answer driver.Grant) (*core.Hold, error) {
	c := w.c
	c.lock()
	now := c.core.Now()
	if !w.gone { // the engine has not called parked, but it has ended the hold
		w.giveUp(now)
	}
	if c.core.Closed || w.g.Phase == grants.Revoked || c.core.ExpiredOnArrival(answer, now) {
		w.g.ReleaseInBackground(true) // an undo, so that the signal goes on to the next waiter
		defer c.unlock()
		if c.core.Closed {
			return nil, wrap("wait for the condition of", w.r.Key, ErrClosed)
		}
		return nil, &LostError{Kind: w.r.Kind, Name: w.r.Name, Token: answer.Token, Reason: LostExpired}
	}
	if old := c.core.Passing(w.new.Lock); old != nil {
		old.Alone = true // its loss has not been reported yet, but the engine gave the lock to w
	}
	w.g.Accept(answer, now)
	w.g.Alone = true // waiters of this process are in the engine's queue already
	w.g.AddHold(w.new, w.at, now, false)
	w.g.AddSameOwner()
	c.unlock()
	tellHeld(ctx, w.new, facts{Cond: true})
	return w.new, nil
}
