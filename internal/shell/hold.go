package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// doHolding runs fn under l and unlocks l, also when fn panics.
func doHolding(ctx context.Context, l *core.Hold, fn func(ctx context.Context) error) (err error) {
	defer func() { err = Joined(err, UnlockInTime(ctx, l)) }()
	return fn(HoldContext(ctx, l))
}

// UnlockInTime unlocks l whether or not ctx has ended. It waits at most CloseTimeout for the engine's confirmation. If
// none has come by then that is no error: the work was protected, and the release goes on in the background. A loss and
// a refusal are errors, whatever else they match.
func UnlockInTime(ctx context.Context, l *core.Hold) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), ClientOf(l.Lock).Config.CloseTimeout)
	defer cancel()
	err := Unlock(bounded, l)
	if errors.Is(err, driver.ErrUnavailable) && !errors.Is(err, driver.ErrLost) && driver.Refusal(err) == nil {
		return nil
	}
	return err
}

// heldErrorOf describes l to another owner of this process, in whose way it is. The caller holds Machine.Mu.
func heldErrorOf(l *core.Hold) *driver.HeldError {
	c := ClientOf(l.Lock)
	return &driver.HeldError{
		Kind:   l.Lock.Key().Kind,
		Name:   l.Lock.Key().Name,
		Owner:  l.Owner.ID,
		Client: c.Config.ClientName,
		Token:  l.Token(),
		Since:  c.Time(l.Since).Round(0), // without the monotonic reading: it is for people
		Until:  c.Time(l.Engine.TrustEnd()).Round(0),
	}
}

// NamedError adds the lock and the operation to an ErrReleased, ErrClosed or ErrAdopted that does not name them yet.
func NamedError(l *core.Hold, op string, err error) error {
	switch err {
	case driver.ErrReleased, driver.ErrClosed, core.ErrAdopted: //nolint:errorlint // what wraps one has said so
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

// MayLast returns the grants on which l rests, or says why it cannot last until end, which was d away when Extend
// began.
func MayLast(l *core.Hold, d time.Duration, end trust.Instant) ([]*core.EngineHold, error) {
	c := ClientOf(l.Lock)
	c.Lock()
	defer c.Unlock()
	now := c.Now()
	l.Check(now)
	if err := l.Ended(); err != nil {
		return nil, err
	}
	if last := l.MaxHoldEnd(); end > last {
		return nil, fmt.Errorf("interlock: extend %q by %v: its MaxHold ends in %v", l.Lock.Key().Name, d,
			last.Since(now).Round(time.Millisecond))
	}
	return slices.Collect(l.EngineHolds()), nil
}

// RenewAll renews each of the grants for at least lease, one after the other. It does nothing on engines without
// leases.
func (c *Client) RenewAll(ctx context.Context, grants []*core.EngineHold, lease time.Duration) error {
	if !c.HasLeases() {
		return nil
	}
	for _, g := range grants {
		if err := c.renewNow(ctx, g, lease); err != nil {
			return err
		}
	}
	return nil
}

// ExtendedHold decides what the renewals of grants mean. They count for nothing if a conversion came in between,
// because the hold rests on other grants then: last is false, and Extend begins again. Otherwise ended is the result. A
// fixed lease is moved to end if the hold still lives.
func ExtendedHold(l *core.Hold, grants []*core.EngineHold, end trust.Instant, err error) (last bool, ended error) {
	c := ClientOf(l.Lock)
	c.Lock()
	defer c.Unlock()
	l.Check(c.Now())
	now := l.Ended()
	switch {
	case now == nil && !slices.Equal(grants, slices.Collect(l.EngineHolds())):
		return false, nil
	case err != nil:
		return true, err
	case now != nil:
		return true, now
	}
	if l.Lock.Terms.NoRenew && end > l.End {
		l.End = end
	}
	for g := range l.EngineHolds() {
		c.Reschedule(g)
	}
	return true, nil
}

// UpgradeHold is Upgrade without what the Observer is told.
func UpgradeHold(ctx context.Context, l *core.Hold, at core.Call) error {
	if err := ctx.Err(); err != nil {
		return Wrap("upgrade", l.Lock.Key(), err)
	}
	c := ClientOf(l.Lock)
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

// AskConversion asks for the other mode beside what l has, and blocks until that is answered or ctx ends. If it is
// answered, w.err says how, and l has turned if w.err is nil. The caller holds Machine.Mu, which AskConversion gives
// up.
func AskConversion(ctx context.Context, l *core.Hold, mode driver.Mode, at core.Call) (w *core.Waiter, err error) {
	c, m := ClientOf(l.Lock), &l.Lock.Terms.Share.Of[mode]
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

// GiveLeft releases what a downgrade has left, and waits for the engine's confirmation. If the engine says that it was
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
	c := ClientOf(l.Lock)
	c.Lock()
	defer c.Unlock()
	// It has run out meanwhile, because it was renewed no more. An engine that finds no such hold may call it taken,
	// because of the read beside it.
	if !isRemembered(lost) && c.Now() >= left.Until {
		return nil
	}
	if l.Check(c.Now()); l.Ended() == nil {
		c.LoseAndRelease(l.Engine, lost.Reason)
	}
	return l.Ended()
}

// What ends by itself, or because the engine says so: the trust in a grant, and the time of a hold. The scheduler
// (internal/core/renew.go) and every look at a lease call expire; the driver calls lossOf. tell.go tells the
// user.

// LossOf returns Request.Lost for g. Drivers keep it for as long as the hold lasts, so it keeps nothing but g alive.
func LossOf(g *core.EngineHold) func(reason driver.LostReason, cause error) {
	return func(reason driver.LostReason, cause error) { lostByEngine(g, reason, cause) }
}

// lostByEngine is told that the engine took the hold back. The driver calls it from a goroutine of its own, perhaps
// before Acquire has returned. Then only a mark is left, because nobody has the hold yet.
func lostByEngine(g *core.EngineHold, reason driver.LostReason, cause error) {
	c := ClientOf(g.Lock)
	c.Lock()
	defer c.unlockInside()
	switch g.Phase {
	case grants.Requested:
		g.Phase = grants.Revoked
	case grants.Live, grants.Abandoned: // an abandoned one may still have holds
		c.Lose(g, reason, cause)
	}
}
