package shell

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// doHolding runs fn under l and unlocks l, also when fn panics.
func doHolding(ctx context.Context, l *core.Hold, fn func(ctx context.Context) error) (err error) {
	defer func() { err = Joined(err, UnlockInTime(ctx, l)) }()
	return fn(HoldContext(ctx, l))
}

// unlockInTime unlocks l whether or not ctx has ended. It waits at most CloseTimeout for the engine's confirmation. If
// none has come by then that is no error: the work was protected, and the release goes on in the background. A loss and
// a refusal are errors, whatever else they match.
func UnlockInTime(ctx context.Context, l *core.Hold) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), ClientOfLock(l.Lock).Config.CloseTimeout)
	defer cancel()
	err := Unlock(bounded, l)
	if errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrLost) && driver.Refusal(err) == nil {
		return nil
	}
	return err
}

// heldErrorOf describes l to another owner of this process, in whose way it is. The caller holds Machine.Mu.
func heldErrorOf(l *core.Hold) *driver.HeldError {
	c := ClientOfLock(l.Lock)
	return &driver.HeldError{
		Kind: l.Lock.Key().Kind, Name: l.Lock.Key().Name, Owner: l.Owner.ID, Client: c.Config.ClientName, Token: l.Token(),
		Since: c.Time(l.Since).Round(0), // without the monotonic reading: it is for people
		Until: c.Time(l.Engine.TrustEnd()).Round(0),
	}
}

// namedError adds the lock and the operation to an ErrReleased, ErrClosed or ErrAdopted that does not name them yet.
func NamedError(l *core.Hold, op string, err error) error {
	if err == driver.ErrReleased || err == driver.ErrClosed || err == core.ErrAdopted { //nolint:errorlint // what wraps it has said so
		return Wrap(op, l.Lock.Key(), err)
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
func WatchHold(l *core.Hold, w *LeaseContext) error {
	c := ClientOfLock(l.Lock)
	c.Lock()
	defer c.Unlock()
	l.Check(c.Machine.Now())
	if err := l.Ended(); err != nil {
		return err
	}
	l.Listening().Contexts.Add(&w.Ending)
	return nil
}
