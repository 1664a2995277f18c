package shell

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

// CondWait is one Wait under way.
type CondWait struct {
	c    *Client
	old  *core.Hold       // the hold that is given up
	new  *core.Hold       // the hold that is to come
	g    *core.EngineHold // of new
	R    driver.Request
	Give *driver.Release // of old: the engine ends it in the step in which r begins to wait
	at   trust.Instant

	// Guarded by Machine.Mu.
	gone   bool              // old has ended in this process
	waited bool              // the engine has said that r waits for a signal
	loss   *driver.LostError // how old would have been lost if it were not being given up; nil if it would not
}

// BeginCondWait prepares the wait as soon as l has no cooldown any more. It blocks for the rest of a MinHold. If ctx
// ends before that, l is unlocked.
func BeginCondWait(ctx context.Context, m *core.Lock, l *core.Hold) (*CondWait, error) {
	for {
		w, cooldown, err := prepareCondWait(m, l)
		switch {
		case errors.Is(err, driver.ErrClosed): // Close may wait for something else before it releases l
			return nil, Joined(err, yieldHold(ctx, l))
		case cooldown == 0 || err != nil:
			return w, err
		}
		bounded, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(ClientOf(m).WaitsCtx, cancel)
		// The pause also ends if l ends, or with the client; prepare then says which.
		over := Pause(HoldContext(bounded, l), cooldown)
		forget()
		cancel()
		if !over && ctx.Err() != nil {
			return nil, errors.Join(endedWith(ctx, l), yieldHold(ctx, l))
		}
	}
}

// yieldHold is Unlock of a hold that may have ended meanwhile, which is no error then.
func yieldHold(ctx context.Context, l *core.Hold) error {
	if err := Unlock(ctx, l); !errors.Is(err, driver.ErrReleased) {
		return err
	}
	return nil
}

// prepareCondWait ends l in this process, unless only the engine can say whether it may be given up: then l ends with
// the engine's answer. It counts the wait as background and as one of its owner's; over takes that back. If l has a
// cooldown, prepare returns what is left of it and does nothing else.
func prepareCondWait(m *core.Lock, l *core.Hold) (w *CondWait, cooldown time.Duration, err error) {
	cl := ClientOf(m)
	cl.Lock()
	defer cl.Unlock()
	switch {
	case ClientOf(l.Lock) != cl:
		return nil, 0, fmt.Errorf("the lease is of %s %q of another client: wait by the client that took it: %w",
			l.Lock.Key().Kind, l.Lock.Key().Name, driver.ErrNotHeld)
	case l.Lock.Key() != m.Key():
		return nil, 0, fmt.Errorf("the lease is of %s %q: %w", l.Lock.Key().Kind, l.Lock.Key().Name, driver.ErrNotHeld)
	}
	now := cl.Now()
	if err := mayWait(l, now); err != nil {
		return nil, 0, err
	}
	if cooldown := l.Engine.Cooldown(); cooldown > 0 {
		return nil, cooldown, nil
	}
	w = &CondWait{c: cl, old: l, new: l.Lock.NewHold(l.Owner), Give: l.Engine.ReleaseRequest(), at: now}
	w.R = DriverRequest(l.Lock, cl.NewID(), l.Owner)
	w.R.Tokens = 1
	w.g = l.Lock.NewEngineHold(w.R.ID)
	w.R.Lost = LossOf(w.g)
	cl.Background.Add(1)
	l.Owner.Waits.Add(1)
	// The engine may refuse with ErrNested. Until it has answered, l is only marked: see CondWait.EndedMeanwhile.
	if l.Owner.Named {
		l.Listening().CondWait = w
	} else {
		w.giveUp(now)
	}
	return w, 0, nil
}

// Over takes back what prepare has counted.
func (w *CondWait) Over() {
	w.old.Owner.Waits.Add(-1)
	w.c.Background.Done()
}

// mayWait says why l cannot be given up for a wait, or returns nil. The caller holds Machine.Mu.
func mayWait(l *core.Hold, now trust.Instant) error {
	c := ClientOf(l.Lock)
	l.Check(now)
	switch err := l.Ended(); {
	case err != nil && c.Closed:
		return driver.ErrClosed
	case err != nil:
		return errors.Join(driver.ErrNotHeld, err)
	case l.Listeners != nil && l.Listeners.CondWait != nil:
		return fmt.Errorf("it is being given up by another wait: %w", driver.ErrNotHeld)
	case l.HasOthers():
		return driver.ErrNested
	case l.Engine.Phase == grants.Abandoned:
		return fmt.Errorf("a hold beside it was abandoned, and the lock is left to run out: unlock this one: %w",
			driver.ErrNested)
	case c.Closed:
		return driver.ErrClosed
	}
	return nil
}

// giveUp ends the old hold in this process. It may be called when the hold has ended already. The caller holds
// Machine.Mu.
func (w *CondWait) giveUp(now trust.Instant) {
	w.gone = true
	if w.old.Ended() == nil {
		w.old.Release(now)
		w.old.Engine.Forget()
		w.c.AfterUnlock(func() { w.old.Owner.Remove(w.old); TellReleased(w.old, nil) })
		return
	}
	w.old.Owner.Remove(w.old) // it ended while the engine was asked, and nobody will unlock it
}

// EndedMeanwhile ends the old hold as released although this process finds it lost, while the engine is asked to end
// it. Its owner has given it up, so nobody has lost anything. Most likely the engine has ended it, and its answer is on
// the way; if not, Wait reports what became of it. The caller holds Machine.Mu.
func (w *CondWait) EndedMeanwhile(lost *driver.LostError) {
	w.loss, w.gone = lost, true
	w.old.Release(w.c.Now())
	w.c.AfterUnlock(func() { w.old.Owner.Remove(w.old); TellReleased(w.old, nil) })
}

// Parked is called by the driver, in any goroutine, when the engine has ended the old hold. Waiters of this process ask
// the engine from then on: before, it still counted the lock as held.
func (w *CondWait) Parked() {
	w.c.Lock()
	defer w.c.unlockInside()
	w.waited = true
	w.giveUp(w.c.Now())
	w.c.AskFor(w.old.Lock)
}

// Failed settles both parts of the wait, unless the outcome is known because the engine refused with ErrNested, and
// returns what err means.
func (w *CondWait) Failed(ctx context.Context, err error, ended bool) error {
	key := w.R.Key
	w.c.Lock()
	defer w.c.Unlock()
	if errors.Is(err, driver.ErrNested) && driver.IsDefinite(err) && !w.gone {
		w.old.Listeners.CondWait = nil
		return Wrap("wait for the condition of", key, err)
	}
	w.giveUp(w.c.Now())
	w.c.ReleaseInBackground(w.old.Lock, w.Give)
	w.g.ReleaseInBackground(true)
	w.c.AskFor(w.old.Lock)
	switch {
	case errors.Is(err, driver.ErrNested) && w.loss != nil: // everything is as it was, except that the hold is lost
		return w.loss
	case ctx.Err() != nil && !w.waited && errors.Is(err, driver.ErrUnavailable):
		return Unavailable("wait for the condition of", key, errors.Join(endedWith(ctx, w.old), err))
	case ctx.Err() != nil:
		return Wrap("wait for the condition of", key, endedWith(ctx, w.old))
	case ended || w.c.Closed:
		return Wrap("wait for the condition of", key, driver.ErrClosed)
	case errors.Is(err, driver.ErrLost) || driver.IsDefinite(err):
		return Wrap("wait for the condition of", key, err)
	}
	return Unavailable("wait for the condition of", key, err)
}

// Granted makes the engine's answer a hold.
func (w *CondWait) Granted(ctx context.Context, answer driver.Grant) (*core.Hold, error) {
	c := w.c
	c.Lock()
	now := c.Now()
	if !w.gone { // the engine has not called parked, but it has ended the hold
		w.giveUp(now)
	}
	if c.Closed || w.g.Phase == grants.Revoked || c.ExpiredOnArrival(answer, now) {
		w.g.ReleaseInBackground(true) // an undo, so that the signal goes on to the next waiter
		defer c.Unlock()
		if c.Closed {
			return nil, Wrap("wait for the condition of", w.R.Key, driver.ErrClosed)
		}
		return nil, &driver.LostError{Kind: w.R.Kind, Name: w.R.Name, Token: answer.Token, Reason: driver.LostExpired}
	}
	if old := c.Passing(w.new.Lock); old != nil {
		old.Alone = true // its loss has not been reported yet, but the engine gave the lock to w
	}
	w.g.Accept(answer, now)
	w.g.Alone = true // waiters of this process are in the engine's queue already
	w.g.AddHold(w.new, w.at, now, false)
	w.g.AddSameOwner()
	c.Unlock()
	TellHeld(ctx, w.new, Facts{Cond: true})
	return w.new, nil
}
