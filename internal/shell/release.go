package shell

import (
	"cmp"
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

// Unlock: who gets the lock next, and what the caller waits for. In this order: the owner's further holds, the next
// waiter in this process (PassOn), this client itself (retention), the engine. The engine is asked in the caller's
// goroutine first; what is not confirmed by then goes on in SettleNow.

// UnlockGrace is how long Unlock waits for the engine's confirmation if its context had ended before the call. So a
// deferred Unlock with a cancelled context can still report the outcome.
const UnlockGrace = 40 * time.Millisecond

// Unlock is Unlock of the user's hold h.
func Unlock(ctx context.Context, h *core.Hold) error {
	c := ClientOf(h.Lock)
	c.Lock()
	now := c.Now()
	h.Check(now)
	if err := h.Ended(); err != nil {
		c.Unlock()
		// A lost hold stays with its owner until here, so that the owner cannot re-enter without noticing.
		h.Owner.Remove(h)
		return Wrap("unlock", h.Lock.Key(), err)
	}
	own, read := h.EndHold(now)
	c.Unlock()
	h.Owner.Remove(h)
	err := awaitBoth(ctx, own, read)
	TellReleased(h, err)
	return err
}

// awaitBoth waits for the release of what a hold rested on, and of the read below it if it was upgraded, within one
// grace.
func awaitBoth(ctx context.Context, own, read core.PendingRelease) error {
	if read.None() {
		return confirm(ctx, own, UnlockGrace)
	}
	start, grace, ended := time.Now(), UnlockGrace, ctx.Err() != nil
	err := confirm(ctx, own, grace)
	if ended { // without that the grace has not begun yet
		grace -= time.Since(start)
	}
	return errors.Join(err, confirm(ctx, read, grace))
}

// renewAndHandOff renews g and passes it on. A grant that came by a push is short, and the next waiter in this process
// wants a full lease. That costs one round trip once, and saves one for each pass that follows; see docs/rationale.md,
// Pushed grants.
func renewAndHandOff(g *core.EngineHold) {
	c := ClientOf(g.Lock)
	err := c.renewNow(c.renewCtx, g, g.Lock.Terms.Lease)
	c.Lock()
	defer c.unlockInside()
	g.Between = false
	// Everything may have changed during the renewal: g may be lost, the waiters gone, the time over.
	if g.Phase != grants.Gone && g.GoOn(c.Now(), grants.Around{Renewed: true, Doubt: err != nil}) {
		g.GiveBack()
	}
}

// confirmLocally releases the hold on a local engine, in the caller's goroutine. If the engine cannot do it, for
// instance with a full disk, the background goes on.
func confirmLocally(w core.PendingRelease) error {
	c := ClientOf(w.Lock)
	defer c.Background.Done() // added by giveUp
	err := releaseLocally(w.Engine, w.Cooldown)
	c.Lock()
	defer c.Unlock()
	// Not before the release: a local engine has no queue in which a place could be kept.
	c.AskFor(w.Engine.Lock)
	if err != nil && !errors.Is(err, driver.ErrLost) {
		c.ReleaseInBackground(w.Lock, w.ReleaseRequest())
		return Unavailable("unlock", w.Lock.Key(), err)
	}
	return confirmedRelease(w, err, false)
}

// confirmRemotely releases the hold over a network: once in the caller's goroutine, within ctx and SettleAttempt. If
// that brings no answer, the background goes on until the outcome is known, and the caller waits for it as long as ctx
// allows. If ctx had ended before the call, it waits for grace.
func confirmRemotely(ctx context.Context, w core.PendingRelease, grace time.Duration) error {
	c := ClientOf(w.Lock)
	r, doubt := w.ReleaseRequest(), false
	var refused error
	if ctx.Err() == nil {
		bounded := core.CallContext{User: ctx, Base: c.releaseCtx, Until: time.Now().Add(SettleAttempt)}
		err := c.Driver.Release(&bounded, r)
		bounded.End()
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrClosed) {
			c.Background.Done()
			return confirmedRelease(w, err, false)
		}
		doubt, grace = mayHaveRun(err), 0 // the engine has had its time
		if driver.Refusal(err) != nil {
			refused = Unavailable("unlock", w.Lock.Key(), err)
		}
	}
	// The buffer lets the goroutine end when nobody listens any more.
	said := make(chan error, 1)
	go func() { // ends when the word is there, or with c.hard
		defer c.Background.Done()
		more, err := c.SettleNow(w.Lock, r)
		said <- confirmedRelease(w, err, doubt || more)
	}()
	if refused != nil { // the engine would say the same again, unless somebody mends the cause in time
		return refused
	}
	return awaitRelease(ctx, w, said, grace)
}

// confirm releases the hold and waits for the engine's confirmation, as long as ctx allows, or for grace if ctx had
// ended before.
func confirm(ctx context.Context, w core.PendingRelease, grace time.Duration) error {
	switch {
	case w.None():
		return nil
	case ClientOf(w.Lock).Traits.Local:
		return confirmLocally(w)
	default:
		return confirmRemotely(ctx, w, grace)
	}
}

// awaitRelease waits for the answer of the background as long as ctx allows, and for grace after that.
func awaitRelease(ctx context.Context, w core.PendingRelease, said <-chan error, grace time.Duration) error {
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
		return Unavailable("unlock", w.Lock.Key(), ctx.Err())
	}
}

// confirmedRelease says what the engine's answer to a release means to the caller. doubt says that an earlier copy of
// the release may have ended the hold.
func confirmedRelease(w core.PendingRelease, err error, doubt bool) error {
	if err == nil || !errors.Is(err, driver.ErrLost) {
		return err
	}
	lost := w.Engine.LostError(driver.LostExpired, nil)
	var told *driver.LostError
	if errors.As(err, &told) {
		lost.Reason, lost.Cause = told.Reason, told.Cause
	}
	if lost.Reason == driver.LostAdopted {
		return Wrap("unlock", w.Lock.Key(), core.ErrAdopted)
	}
	// An earlier copy may have ended the hold, and its reply was lost. Before w.Until nobody else can have ended it,
	// because the lease had not run out, unless the engine remembers how.
	if doubt && !isRemembered(told) && ClientOf(w.Lock).Reading() < w.Until {
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

// Settling: a release or an undo is repeated in the background until its outcome is known, until nothing can be left of
// it, or until Close gives up. Without it each lost reply could leave a
// lock closed: for its lease, or until the session ends.

// ShortestHorizon is how long a copy of a request is taken to be under way at least, however short its lease is.
const ShortestHorizon = 10 * time.Second

// endsByItself returns after how long nothing can be left that r would end, as [driver.Driver] says. By then no copy of
// the acquisition can arrive any more, and what the last copy took has run out. It reports false if something may be
// left for ever, on engines without leases or whose queue never forgets a waiter.
func (c *Client) endsByItself(r *driver.Release) (after time.Duration, ends bool) {
	copies, lease, place := max(r.Horizon, ShortestHorizon), r.Horizon, c.Traits.QueueTimeout
	if !c.HasLeases() || r.Undo && place == 0 {
		return 0, false
	}
	return copies + max(lease, place), true
}

// SettleNow asks the engine to release r, of m, until it is known to be done, until nothing can be left of r, or until
// Close gives up. It returns the last answer, and in doubt whether a copy before it may have been carried out. It tells
// the Observer, and blocks for up to endsByItself.
func (c *Client) SettleNow(m *core.Lock, r *driver.Release) (doubt bool, err error) {
	if o := c.Config.Observer; o.Settling != nil || o.Settled != nil {
		e := factsOf(m, nil)
		e.Undo = r.Undo
		c.tell("Settling", o.Settling, e)
		defer func() {
			if !isSettled(err) {
				e.Err = err
			}
			c.tell("Settled", o.Settled, e)
		}()
	}
	return c.askUntilSettled(r)
}

// isSettled reports whether err, of a release, says that nothing is left: released, not there, or the driver closed.
func isSettled(err error) bool {
	return err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrClosed)
}

// askUntilSettled is SettleNow without the Observer. Only c.hard ends it early, never a caller's context: the caller
// may be gone for long.
func (c *Client) askUntilSettled(r *driver.Release) (doubt bool, err error) {
	after, ends := c.endsByItself(r)
	start := time.Now()
	open := false // some copy has got no answer, so a refusal of the last one is not the whole truth
	for wait := settleFirst; ; wait = min(2*wait, SettleMost) {
		ctx, cancel := context.WithTimeout(c.releaseCtx, SettleAttempt)
		err := c.Driver.Release(ctx, r)
		cancel()
		if isSettled(err) {
			return doubt, err
		}
		over := ends && time.Since(start) >= after
		if over || !Pause(c.releaseCtx, wait) {
			c.Config.Logger.Warn("interlock: gave up releasing", "lock", r.Name, "engine", c.Traits.Engine, "err", err)
			return doubt, c.unsettled(doubtful("unlock", r.Key, err, open))
		}
		doubt, open = doubt || mayHaveRun(err), open || leavesDoubt(err)
	}
}

// unsettled notes for Close's error that something was not released, and returns err.
func (c *Client) unsettled(err error) error {
	c.Lock()
	defer c.Unlock()
	if c.Closed {
		c.unconfirmed = append(c.unconfirmed,
			fmt.Errorf("%w: the lock becomes free when its %s has ended", err, c.Traits.Lifetime))
	}
	return err
}

// Holds that were granted to a caller that never got to know. Its context had ended, or a panic or a part of a Multi
// got in the way. They are released without their MinHold, because nothing was done under them.

// disownHold takes the MinHold off l, because nobody got to know it.
func disownHold(l *core.Hold) {
	c := ClientOf(l.Lock)
	c.Lock()
	defer c.Unlock()
	if l.Ended() == nil {
		l.DropMinHold()
	}
}

// GiveBackHold is Unlock of such a hold, within CloseTimeout. If ctx has ended, it returns at once and the release goes
// on in the background.
func GiveBackHold(ctx context.Context, l *core.Hold) error {
	c := ClientOf(l.Lock)
	disownHold(l)
	if ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, c.Config.CloseTimeout)
		defer cancel()
		return Unlock(bounded, l)
	}
	if !c.spawn(func() { _ = Unlock(c.releaseCtx, l) }) {
		return driver.ErrClosed // Close has released it
	}
	return nil
}

// Retention: after an Unlock for which nobody waits, the client keeps the engine's grant without an owner. A Lock of
// this client takes the grant over without a message. It gets the next token and the trust that is left, like a pass
// inside the process. When another client asks the engine for the lock, the engine tells this one (Request.Wanted),
// which gives the grant back. acquire.go takes it over; internal/core/retain.go has what differs with
// sessions.
//
// A client that dies while it retains a grant keeps others out for nothing, until the engine ends the lease. So the
// first renewal after RetainGrace gives the grant a short lease (Renewal.Retained), whatever the hold's lease was.
// Chubby's clients, GPFS and NFS delegations cache locks in this way. internal/handoff has the model, and
// docs/rationale.md, Retention, the five rules: without any one of them two owners are inside, or one waits for too
// long.

// wantedByOther is Request.Wanted: another client wants the lock. A retained grant is released at once. A grant that is
// held is marked, so that its Unlock does not retain it. The driver may call this from any goroutine, repeatedly, and
// before Acquire has returned.
func wantedByOther(g *core.EngineHold) {
	c := ClientOf(g.Lock)
	c.Lock()
	defer c.unlockInside()
	if !g.Wanted {
		for l := range g.All() {
			tellWanted(l)
		}
	}
	TellRecalled(g)
	g.Recalled, g.Wanted = true, true
	if r := g.Retained(); r != nil {
		c.Retention.Recall(g.Lock)
		c.ReleaseRetained(g)
		c.AskFor(g.Lock)
	}
}

// Locks that nobody holds and nobody gets yet: MinHold after an early release, LockDelay after a loss.
// internal/core/end.go begins them; docs/rationale.md, Cooldowns, has the decision.

// KeepsForCooldown reports whether this process keeps the hold of key with that token for a cooldown, with no owner.
// The engine shows it as held, so an election would show a leader that has resigned.
func (c *Client) KeepsForCooldown(key driver.Key, token uint64) bool {
	c.Lock()
	defer c.Unlock()
	g := c.EngineHoldOf(key, token)
	return g != nil && !g.IsHeld() && g.CooldownEnd() < trust.Never
}

// Has reports whether this client has the hold of key with that token, held or kept for a cooldown.
func (c *Client) Has(key driver.Key, token uint64) bool {
	c.Lock()
	defer c.Unlock()
	return c.EngineHoldOf(key, token) != nil
}

// takeLater ends, for Close, every hold that this process must keep for a cooldown or leave to run out. It returns what
// must be released when that time is over, the earliest first. The caller holds Machine.Mu.
func (c *Client) takeLater() []core.LateRelease {
	all := c.takeAllRunOuts()
	for g, r := range c.Cooldowns {
		if c.HasLeases() || g.Cooldown() == 0 {
			continue
		}
		all = append(all, core.LateRelease{Lock: g.Lock, Release: g.ReleaseRequest(), At: r.Until})
		c.dropGrant(g)
	}
	slices.SortFunc(all, func(a, b core.LateRelease) int { return cmp.Compare(a.At, b.At) })
	return all
}

// releaseLater releases what Close could not yet release, and then closes the driver if Open opened it. It is the one
// goroutine that outlives Close, so there is no caller left to return an error to. A release that is not confirmed
// within twice the client's lease is given up: the end of the session or process frees the lock.
func (c *Client) releaseLater(all []core.LateRelease) {
	ctx := context.Background() //nolint:forbidigo // the client's have ended
	for _, next := range all {
		Pause(ctx, next.At.Since(c.Reading()))
		c.releaseLate(ctx, next.Release)
	}
	if !c.Owned {
		return
	}
	if err := c.Driver.Close(); err != nil {
		c.Config.Logger.Warn("interlock: close after what outlived Close", "engine", c.Traits.Engine, "err", err)
	}
}

// releaseLate is SettleNow after Close: it repeats r for at most twice the client's lease.
func (c *Client) releaseLate(ctx context.Context, r *driver.Release) {
	patient, stop := context.WithTimeout(ctx, 2*c.Config.Lease)
	defer stop()
	for wait := settleFirst; ; wait = min(2*wait, SettleMost) {
		attempt, cancel := context.WithTimeout(patient, SettleAttempt)
		err := c.Driver.Release(attempt, r)
		cancel()
		if err == nil || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrClosed) {
			return
		}
		if !Pause(patient, wait) {
			c.Config.Logger.Warn(
				"interlock: release after Close",
				"lock",
				r.Name,
				"engine",
				c.Traits.Engine,
				"err",
				err,
			)
			return
		}
	}
}

// renewToRunOut sends the last renewal of a lock that is left to run out, until it is answered or the trust is over,
// which was left away when it was prepared. Close waits for it: only c.hard ends it early. Nobody holds the lock any
// more, so the answer changes nothing here.
func (c *Client) renewToRunOut(one []core.PendingRenewal, left time.Duration) {
	ctx, cancel := context.WithTimeout(c.releaseCtx, left)
	defer cancel()
	for wait := settleFirst; ; wait *= 2 {
		var err error
		c.renewer.Renew(ctx, []driver.Renewal{one[0].Renewal}, func(_ int, answer error) { err = answer })
		if err == nil {
			return
		}
		if errors.Is(err, driver.ErrLost) || !Pause(ctx, wait) {
			c.Config.Logger.Warn(
				"interlock: lock left to run out was not renewed; it may be free before a lease is over",
				"lock",
				one[0].Renewal.Name,
				"engine",
				c.Traits.Engine,
				"err",
				err,
			)
			return
		}
	}
}

// releaseWhenDue releases own after that time, unless Close has taken it over. It ends soon after, or with Close.
func (c *Client) releaseWhenDue(own *core.LateRelease, after time.Duration) {
	Pause(c.renewCtx, after)
	if c.takeRunOut(own) {
		_, _ = c.SettleNow(own.Lock, own.Release)
	}
}

// takeRunOut takes own over, to release it. It reports false if Close has done so: exactly one of the two releases it.
func (c *Client) takeRunOut(own *core.LateRelease) bool {
	c.Lock()
	defer c.Unlock()
	_, mine := c.LeftToExpire[own]
	delete(c.LeftToExpire, own)
	return mine
}

// takeAllRunOuts is takeRunOut for Close: it returns all that is left to run out, held or not, and ends the holds. On
// engines with leases it returns nothing, because leases end by themselves. The caller holds Machine.Mu.
func (c *Client) takeAllRunOuts() (all []core.LateRelease) {
	left := c.LeftToExpire
	c.LeftToExpire = nil
	if c.HasLeases() {
		return nil
	}
	for own := range left {
		all = append(all, *own)
	}
	for _, g := range c.EngineHolds {
		for g != nil {
			next := g.After
			if g.Phase == grants.Abandoned {
				at := c.Now().Plus(g.ExpiryDelay())
				all = append(all, core.LateRelease{Lock: g.Lock, Release: g.ReleaseRequest(), At: at})
				c.dropGrant(g)
			}
			g = next
		}
	}
	return all
}
