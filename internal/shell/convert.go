package shell

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// upgradeHold is Upgrade without what the Observer is told.
func UpgradeHold(ctx context.Context, l *core.Hold, at core.Call) error {
	if err := ctx.Err(); err != nil {
		return Wrap("upgrade", l.Lock.Key(), err)
	}
	c := ClientOfLock(l.Lock)
	c.Lock()
	if err := l.MayConvert(driver.Exclusive); err != nil {
		c.Unlock()
		return Wrap("upgrade", l.Lock.Key(), err)
	}
	w, err := AskConversion(ctx, l, driver.Exclusive, at) // gives up Machine.Mu
	if w.Err == nil && w.Answered {
		return nil
	}
	return NamedError(l, "upgrade", WithOperation("upgrade", l.Lock.Key(), err))
}

// askConversion asks for the other mode beside what l has, and blocks until that is answered or ctx ends. If it is
// answered, w.err says how, and l has turned if w.err is nil. The caller holds Machine.Mu, which askConversion gives up.
func AskConversion(ctx context.Context, l *core.Hold, mode driver.Mode, at core.Call) (w *core.Waiter, err error) {
	c, m := ClientOfLock(l.Lock), &l.Lock.Terms.Share.Of[mode]
	if l.Lock.Terms.OwnLabel {
		m = withLabel(m, l.Lock.Terms.Label)
	}
	w = &core.Waiter{Hold: &core.Hold{Lock: m, Owner: l.Owner}, Call: at, Alongside: l.Engine, Converts: l}
	listeners := l.Listening()
	listeners.Conversion = w
	_, err = c.ask(ctx, w, false) // gives up Machine.Mu
	c.Lock()
	defer c.Unlock()
	listeners.Conversion = nil
	return w, err
}

// giveLeft releases what a downgrade has left, and waits for the engine's confirmation. If the engine says that it was
// lost, the hold is lost as well: another owner may have written meanwhile.
func GiveLeft(ctx context.Context, l *core.Hold, left *core.PendingRelease) error {
	if left == nil {
		return nil
	}
	err := confirm(ctx, *left, UnlockGrace)
	var lost *driver.LostError
	if !errors.As(err, &lost) {
		return err
	}
	c := ClientOfLock(l.Lock)
	c.Lock()
	defer c.Unlock()
	// It has run out meanwhile, because it was renewed no more. An engine that finds no such hold may call it taken,
	// because of the read beside it.
	if !isRemembered(lost) && c.Machine.Now() >= left.Until {
		return nil
	}
	if l.Check(c.Machine.Now()); l.Ended() == nil {
		c.Machine.LoseAndRelease(l.Engine, lost.Reason)
	}
	return l.Ended()
}
