package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// doHolding runs fn under l and unlocks l, also when fn panics.
func doHolding(ctx context.Context, l *core.Hold, fn func(ctx context.Context) error) (err error) {
	defer func() { err = joined(err, unlockInTime(ctx, l)) }()
	return fn(holdContext(ctx, l))
}

// unlockInTime unlocks l whether or not ctx has ended. It waits at most CloseTimeout for the engine's confirmation. If
// none has come by then that is no error: the work was protected, and the release goes on in the background. A loss and
// a refusal are errors, whatever else they match.
func unlockInTime(ctx context.Context, l *core.Hold) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientOfLock(l.Lock).opts.CloseTimeout)
	defer cancel()
	err := unlock(bounded, l)
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrLost) && driver.Refusal(err) == nil {
		return nil
	}
	return err
}

// heldErrorOf describes l to another owner of this process, in whose way it is. The caller holds Machine.Mu.
func heldErrorOf(l *core.Hold) *HeldError {
	c := clientOfLock(l.Lock)
	return &HeldError{
		Kind: l.Lock.Key().Kind, Name: l.Lock.Key().Name, Owner: l.Owner.ID, Client: c.opts.ClientName, Token: l.Token(),
		Since: c.time(l.Since).Round(0), // without the monotonic reading: it is for people
		Until: c.time(l.Engine.TrustEnd()).Round(0),
	}
}

// namedError adds the lock and the operation to an ErrReleased, ErrClosed or ErrAdopted that does not name them yet.
func namedError(l *core.Hold, op string, err error) error {
	if err == ErrReleased || err == ErrClosed || err == ErrAdopted { //nolint:errorlint // what wraps it has said so
		return wrap(op, l.Lock.Key(), err)
	}
	return err
}

// tellWanted closes the channel of Wanted. The caller holds Machine.Mu, and calls it once for each hold.
func tellWanted(l *core.Hold) {
	if l.Listeners != nil && l.Listeners.Wanted != nil {
		close(l.Listeners.Wanted)
	}
}

// watchHold has w cancelled when the hold ends, or says how it has ended.
func watchHold(l *core.Hold, w *leaseContext) error {
	c := clientOfLock(l.Lock)
	c.lock()
	defer c.unlock()
	l.Check(c.core.Now())
	if err := l.Ended(); err != nil {
		return err
	}
	l.Listening().Contexts.Add(&w.ending)
	return nil
}
