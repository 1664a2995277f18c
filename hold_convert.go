package interlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// How a hold turns into one of another mode (Upgrade, Downgrade). The engine grants the other mode beside what the hold
// has, so that nobody gets in between, and the hold moves there. From then on its token, trust and end are those of the
// new grant.
//
// A downgrade gives back what the hold had. An upgrade keeps it, because a downgrade returns to it: another lease, the
// inner one of an upgrade pair (internal/core/convert.go), holds the upgradeable read meanwhile. Both are lost and released
// together. docs/adr/0021 has the decision.

// Upgrade turns an upgradeable read into the write, ahead of all waiters. No other writer gets in between, so
// what was read is still true. Upgrade waits until the other readers have left, and keeps new ones out meanwhile. The
// hold gets a new token and nonce, and so do all holds that its owner has on this lock.
//
// ctx bounds the waiting. When it ends first the error is as for [Mutex.Lock], and the upgradeable read is held as
// before. So it is after every other error that does not match ErrLost. If the engine did not answer (ErrUnavailable)
// the write may have been granted. It is given back in the background, and Upgrade may be called again. If the hold is
// lost while it waits, Upgrade returns the *LostError; if it is unlocked, ErrReleased.
//
// A plain read gets ErrDeadlock, because two readers that both want to write would wait for each other. ErrConflict is
// returned for a hold that already writes, and for a second Upgrade while the first one waits. Other locks have no
// modes: ErrUnsupported.
//
// It costs one round trip, and one message when it has to wait. The hold has two leases in the engine until it is
// downgraded or unlocked.
func (l *Lease) Upgrade(ctx context.Context) error {
	h := l.hold()
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	c, at := shell.ClientOfLock(h.Lock), shell.ClientOfLock(h.Lock).NewCall()
	bound, bounded := shell.BoundWait(ctx, h.Lock.Terms.Wait)
	err := bound.End("upgrade", h.Lock.Key(), shell.UpgradeHold(bounded, h, at))
	e := shell.HoldFactsNow(h)
	shell.EndCall(at, &e)
	e.Waited, e.Local, e.Err = c.Reading().Since(at.Start), false, err
	if err != nil {
		c.TellFailed(ctx, e)
		return err
	}
	if upgraded := c.Config.Observer.Upgraded; upgraded != nil {
		upgraded(ctx, e)
	}
	return nil
}

// Downgrade turns the write into a read, and no writer gets in between. The token stays. A hold that was upgraded has
// the upgradeable read again; any other has a plain read, which cannot be upgraded. When Downgrade has returned nil
// other readers can get in. They stay out if the owner has further holds that write, or had one with a LockDelay that
// was lost, until that is over. A MinHold goes on with the read.
//
// If the engine does not answer, the error matches ErrUnavailable. Then either nothing has changed, or Stamp says
// Shared: the hold reads, and the write is being given back in the background. If it turns out that the write had been
// lost, the hold is lost too, and Downgrade returns the *LostError. ErrConflict is returned for a hold that already
// reads or is being upgraded. Locks without modes get ErrUnsupported, and so do engines that cannot convert, with the
// reason.
//
// It costs one round trip for a hold that was upgraded, and two for any other.
func (l *Lease) Downgrade(ctx context.Context) error {
	h := l.hold()
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return shell.Wrap("downgrade", h.Lock.Key(), err)
	}
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	if err := h.MayConvert(driver.Shared); err != nil {
		c.Unlock()
		return shell.Wrap("downgrade", h.Lock.Key(), err)
	}
	var left *core.PendingRelease
	if h.UpgradePair != nil {
		left = h.GoBack()
		c.Unlock()
	} else {
		w, err := shell.AskConversion(ctx, h, driver.Shared, core.Call{Start: c.Reading()}) // gives up Machine.Mu
		if w.Err != nil || !w.Answered {
			return shell.NamedError(h, "downgrade", shell.WithOperation("downgrade", h.Lock.Key(), err))
		}
		left = w.Left
	}
	return shell.NamedError(h, "downgrade", shell.WithOperation("downgrade", h.Lock.Key(), shell.GiveLeft(ctx, h, left)))
}
