package shell

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// Unlock: who gets the lock next, and what the caller waits for. In this order: the owner's further holds, the next
// waiter in this process (passOn), this client itself (hold_retain.go), the engine. The engine is asked in the caller's
// goroutine first; what is not confirmed by then goes on in release_settle.go.

// unlockGrace is how long Unlock waits for the engine's confirmation if its context had ended before the call. So a
// deferred Unlock with a cancelled context can still report the outcome.
const UnlockGrace = 40 * time.Millisecond

// unlock is Unlock of the user's hold h.
func Unlock(ctx context.Context, h *core.Hold) error {
	c := ClientOfLock(h.Lock)
	c.Lock()
	now := c.Machine.Now()
	h.Check(now)
	if err := h.Ended(); err != nil {
		c.Unlock()
		// A lost hold stays with its owner until here, so that the owner cannot re-enter without noticing.
		h.Owner.Remove(h)
		return Wrap("unlock", h.Lock.Key(), err)
	}
	var read core.PendingRelease // of the read below an upgraded hold; none for other holds
	if h.UpgradePair != nil {
		read = h.SplitPair().EndHold(now)
	}
	write := h.EndHold(now)
	c.Unlock()
	h.Owner.Remove(h)
	err := awaitBoth(ctx, write, read)
	TellReleased(h, err)
	return err
}

// awaitBoth waits for the release of an upgraded hold's write and of the read below it, within one grace. For other
// holds read is none.
func awaitBoth(ctx context.Context, write, read core.PendingRelease) error {
	if read.None() {
		return confirm(ctx, write, UnlockGrace)
	}
	start, grace, ended := time.Now(), UnlockGrace, ctx.Err() != nil
	err := confirm(ctx, write, grace)
	if ended { // without that the grace has not begun yet
		grace -= time.Since(start)
	}
	return errors.Join(err, confirm(ctx, read, grace))
}

// renewAndHandOff renews g and passes it on. A grant that came by a push is short, and the next waiter in this process
// wants a full lease. That costs one round trip once, and saves one for each pass that follows; see docs/adr/0016.
func renewAndHandOff(g *core.EngineHold) {
	c := ClientOfLock(g.Lock)
	err := c.renewNow(c.renewCtx, g, g.Lock.Terms.Lease)
	c.Lock()
	defer c.unlockInside()
	g.Between = false
	// Everything may have changed during the renewal: g may be lost, the waiters gone, the time over.
	if g.Phase != grants.Gone && g.GoOn(c.Machine.Now(), grants.Around{Renewed: true, Doubt: err != nil}) {
		g.GiveBack()
	}
}

// confirmLocally releases the hold on a local engine, in the caller's goroutine. If the engine cannot do it, for instance
// with a full disk, the background goes on.
func confirmLocally(w core.PendingRelease) error {
	l, c := w.Hold, ClientOfLock(w.Hold.Lock)
	defer c.Machine.Background.Done() // added by giveUp
	err := releaseLocally(l.Engine, w.Cooldown)
	c.Lock()
	defer c.Unlock()
	// Not before the release: a local engine has no queue in which a place could be kept.
	c.Machine.AskFor(l.Engine.Lock)
	if err != nil && !errors.Is(err, driver.ErrLost) {
		c.Machine.ReleaseInBackground(l.Lock, w.ReleaseRequest())
		return Unavailable("unlock", l.Lock.Key(), err)
	}
	return confirmedRelease(l, err, false, w.Until)
}

// confirmRemotely releases the hold over a network: once in the caller's goroutine, within ctx and settleAttempt. If that
// brings no answer, the background goes on until the outcome is known, and the caller waits for it as long as ctx
// allows. If ctx had ended before the call, it waits for grace.
func confirmRemotely(ctx context.Context, w core.PendingRelease, grace time.Duration) error {
	l, c := w.Hold, ClientOfLock(w.Hold.Lock)
	r, doubt := w.ReleaseRequest(), false
	var refused error
	if ctx.Err() == nil {
		bounded := core.CallContext{User: ctx, Base: c.releaseCtx, Until: time.Now().Add(SettleAttempt)}
		err := c.Driver.Release(&bounded, r)
		bounded.End()
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrClosed) {
			c.Machine.Background.Done()
			return confirmedRelease(l, err, false, w.Until)
		}
		doubt, grace = mayHaveRun(err), 0 // the engine has had its time
		if driver.Refusal(err) != nil {
			refused = Unavailable("unlock", l.Lock.Key(), err)
		}
	}
	// The buffer lets the goroutine end when nobody listens any more.
	said := make(chan error, 1)
	go func() { // ends when the word is there, or with c.hard
		defer c.Machine.Background.Done()
		more, err := c.SettleNow(l.Lock, r)
		said <- confirmedRelease(l, err, doubt || more, w.Until)
	}()
	if refused != nil { // the engine would say the same again, unless somebody mends the cause in time
		return refused
	}
	return awaitRelease(ctx, l, said, grace)
}

// confirm releases the hold and waits for the engine's confirmation, as long as ctx allows, or for grace if ctx had ended
// before.
func confirm(ctx context.Context, w core.PendingRelease, grace time.Duration) error {
	switch {
	case w.None():
		return nil
	case ClientOfLock(w.Hold.Lock).Machine.Traits.Local:
		return confirmLocally(w)
	default:
		return confirmRemotely(ctx, w, grace)
	}
}

// awaitRelease waits for the answer of the background as long as ctx allows, and for grace after that.
func awaitRelease(ctx context.Context, l *core.Hold, said <-chan error, grace time.Duration) error {
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
		return Unavailable("unlock", l.Lock.Key(), ctx.Err())
	}
}

// confirmedRelease says what the engine's answer to a release means to the caller. doubt says that an earlier copy of the
// release may have ended the hold, and until when the trust window would have ended.
func confirmedRelease(l *core.Hold, err error, doubt bool, until trust.Instant) error {
	if err == nil || !errors.Is(err, driver.ErrLost) {
		return err
	}
	lost := l.LostError(driver.LostExpired, nil)
	var told *driver.LostError
	if errors.As(err, &told) {
		lost.Reason, lost.Cause = told.Reason, told.Cause
	}
	if lost.Reason == driver.LostAdopted {
		return Wrap("unlock", l.Lock.Key(), core.ErrAdopted)
	}
	// An earlier copy may have ended the hold, and its reply was lost. Before until nobody else can have ended it,
	// because the lease had not run out, unless the engine remembers how.
	if doubt && !isRemembered(told) && ClientOfLock(l.Lock).Reading() < until {
		return nil
	}
	return lost
}

// isRemembered reports whether the engine remembers how the hold ended, so that it was not by a release. That a lease
// has ended, or that another owner is in, is what an engine says when it finds no such hold: a guess. The other owner
// may have come after the release, or be a reader, a permit, or a further hold of the same owner.
func isRemembered(told *driver.LostError) bool {
	return told != nil && told.Reason != driver.LostExpired && told.Reason != driver.LostTaken
}
