package core

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// Release ends the hold because its owner, or Close, gives it up. It sends nothing. The caller holds Machine.Mu.
func (l *Hold) Release(now trust.Instant) {
	l.released = true
	l.finish(now)
}

// lose ends the hold as a loss, because g ends or its own time is over. The caller goes on with g; what else an
// upgraded hold rests on is given up here. cause may be nil. The caller holds Machine.Mu.
func (l *Hold) lose(g *EngineHold, reason driver.LostReason, cause error) {
	c, end := l.Lock.Core, l.lasted()
	// Something that nobody can stop is under way. So nobody gives the lock back, neither here nor when the last hold
	// beside this one ends.
	if l.Pending > 0 {
		l.Engine.Phase = grants.Abandoned
	}
	lost := l.Engine.LostError(reason, cause)
	// The owner has given the hold up for a condition, and the engine is being asked. That is no loss; Cond.Wait
	// reports what became of it.
	if l.Listeners != nil && l.Listeners.CondWait != nil {
		l.Listeners.CondWait.EndedMeanwhile(lost)
		return
	}
	// loss first: finish tells the listeners how the hold has ended.
	l.Loss = lost
	l.finish(end)
	for other := range l.EngineHolds() {
		if other != g {
			c.vacate(other, l)
		}
	}
	// Another client has adopted the hold, so nothing was lost, and the Observer hears of a release.
	if reason == driver.LostAdopted {
		c.Shell.Adopted(l)
		return
	}
	c.Shell.Lost(l, lost)
}

// lasted returns until when a hold that is lost now was trusted. That is until its time was over, however late that is
// noticed, or until now if the engine reports the loss earlier. The caller holds Machine.Mu.
func (l *Hold) lasted() trust.Instant { return min(l.Lock.Core.Now(), l.End, l.Trusted()) }

// LostError returns the error that says that a hold on g was lost. The caller holds Machine.Mu, or has released g.
func (g *EngineHold) LostError(reason driver.LostReason, cause error) *driver.LostError {
	key := g.Lock.Key()
	return &driver.LostError{
		Kind: key.Kind, Name: key.Name, Token: g.Token + uint64(g.Pass), Reason: reason, Cause: cause,
	}
}

// finish ends the hold as of the instant end: it wakes all that wait for that, and takes the hold off what it rests on.
// Foreign code, such as the cancellation of contexts, runs after Machine.Mu is given up. The caller holds Machine.Mu.
func (l *Hold) finish(end trust.Instant) {
	c := l.Lock.Core
	l.End = end
	// Acquired has not returned yet. Whoever calls it tells the end afterwards, so that the Observer never hears of an
	// end before its beginning.
	if l.Announced == unannounced {
		l.Announced = EndOwed
	}
	for g := range l.EngineHolds() {
		g.drop(l)
	}
	if l.Listeners == nil {
		return
	}
	if l.Listeners.Lost != nil && l.Loss != nil {
		close(l.Listeners.Lost)
	}
	// An Upgrade or Downgrade that waits has nothing left to convert.
	if w := l.Listeners.Conversion; w != nil && !w.Answered {
		w.Withdraw()
		w.Answer(l.Ended())
	}
	if contexts := l.Listeners.Contexts.Take(); len(contexts) > 0 {
		c.Emit(Effect{Verb: CancelContexts, Contexts: contexts, Cause: l.Ended()})
	}
}

// Expire ends g if its trust window is over, and those of its holds whose own end has come (NoRenew, MaxHold). It reads
// no clock, so that one judgement is made at one instant. The caller holds Machine.Mu.
func (c *Machine) Expire(g *EngineHold, now trust.Instant) {
	if g.Phase == grants.Gone {
		return
	}
	if end := g.TrustEnd(); now >= end {
		c.LoseAndRelease(g, g.LossReason(&c.Env, now, end, g.Renewing()))
		return
	}
	// The delay comes first: see EngineHold.delay.
	for l := range g.All() {
		if now >= l.End {
			// Before lose: see EngineHold.delay.
			g.delay(l, now)
			l.lose(g, driver.LostExpired, nil)
		}
	}
	// Its last hold has ended by its own time. Nobody has unlocked it, so it goes back here.
	if !g.IsHeld() && !g.Between && (g.Phase == grants.Abandoned || !g.coolDown()) {
		c.LoseAndRelease(g, driver.LostExpired)
	}
}

// LoseAndRelease loses g on this process's own judgement. The engine may still count it as held, so it is released as
// soon as the engine can be reached. It must not block others for longer than it protects anybody. The caller holds
// Machine.Mu.
//
// The release begins after the holder's contexts have been cancelled. Otherwise another owner could get in before the
// holder is told.
func (c *Machine) LoseAndRelease(g *EngineHold, reason driver.LostReason) {
	for l := range g.All() {
		g.delay(l, c.Now())
	}
	// Everything about the release is read before lose, which drops g and its cooldown.
	give, left := g.ReleaseRequest(), g.Phase == grants.Abandoned || g.IsPending()
	give.Keep = g.EngineCooldown()
	after := g.ExpiryDelay()
	c.Lose(g, reason, g.cause(reason))
	// Its holder asked that nobody give it back; see Lease.Abandon and Lease.Pending.
	if left {
		g.releaseWhenExpired(after)
		return
	}
	c.ReleaseInBackground(g.Lock, give)
}

// Lose ends g and all its holds as a loss. The waiters behind g are sent to the engine at once: the loser may never
// call Unlock, so they must not wait for it. The caller holds Machine.Mu.
func (c *Machine) Lose(g *EngineHold, reason driver.LostReason, cause error) {
	if g.Phase == grants.Gone {
		return
	}
	for l := range g.All() {
		l.lose(g, reason, cause)
	}
	g.Forget()
	c.AskFor(g.Lock)
}

// renewalError is the Cause of a loss for want of a confirmed renewal: how the last one failed. It matches what went
// wrong (such as ECONNREFUSED) but none of the errors by which callers tell classes apart. Otherwise a loss would match
// ErrUnavailable or a context's error as well, and code that retries those would retry after a loss.
type renewalError struct{ err error }

// Error gives what went wrong.
func (e *renewalError) Error() string { return "the last renewal: " + e.err.Error() }

// Is matches everything that the renewal's error matches, except for classes.
func (e *renewalError) Is(t error) bool { return !slices.Contains(classes, t) && errors.Is(e.err, t) }

// As is the same for errors of types.
func (e *renewalError) As(t any) bool {
	switch t.(type) {
	case **driver.UnavailableError, **driver.RefusedError, **driver.HeldError, **driver.LostError:
		return false
	}
	return errors.As(e.err, t)
}

// classes are the errors by which callers tell failures apart.
var classes = []error{
	driver.ErrHeld,
	driver.ErrLost,
	driver.ErrReleased,
	driver.ErrUnavailable,
	driver.ErrRefused,
	driver.ErrUnsupported,
	driver.ErrClosed,
	driver.ErrDeadlock,
	driver.ErrNested,
	driver.ErrConflict,
	driver.ErrNotHeld,
	context.Canceled,
	context.DeadlineExceeded,
}

// hasFailed notes how a renewal of g failed. Few renewals fail, so the errors stand in a map beside the grants. The
// caller holds Machine.Mu.
func (g *EngineHold) hasFailed(err error) {
	g.Failed = true
	own, is := err.(*driver.UnavailableError) //nolint:errorlint // only this itself says that nobody knows
	if is && own.Err != nil {
		err = own.Err
	}
	c := g.Lock.Core
	if c.Failures == nil {
		c.Failures = make(map[*EngineHold]error)
	}
	c.Failures[g] = err
}

// hasSucceeded forgets that a renewal has failed. The caller holds Machine.Mu.
func (g *EngineHold) hasSucceeded() {
	g.Failed = false
	delete(g.Lock.Core.Failures, g)
}

// cause returns what led to the loss of g for that reason, as far as this process knows, or nil. The caller holds
// Machine.Mu.
func (g *EngineHold) cause(reason driver.LostReason) error {
	if err := g.Lock.Core.Failures[g]; err != nil && reason == driver.LostUnconfirmed {
		return &renewalError{err}
	}
	return nil
}

// GoneError says how g has ended, to a caller that was about to use it. The caller holds Machine.Mu.
func (g *EngineHold) GoneError() error {
	if l := g.Last; l != nil && l.Loss != nil {
		return l.Ended()
	}
	return driver.ErrReleased
}

// leaveToExpire ends g in this process and lets it run out. The caller holds Machine.Mu.
func (g *EngineHold) leaveToExpire() {
	after := g.ExpiryDelay()
	g.Forget()
	g.releaseWhenExpired(after)
	g.Lock.Core.AskFor(g.Lock) // the waiters here stand in the engine's line now
}

// ExpiryDelay returns how long g is kept when it is left to run out. That is one lease, as after a crash, or its
// cooldown if that is longer. It must be read before drop, which forgets the cooldown. The caller holds Machine.Mu.
func (g *EngineHold) ExpiryDelay() time.Duration {
	return max(g.Asked, g.Lock.Terms.Lease, g.Cooldown())
}

// releaseWhenExpired releases g after that time. On engines with leases the hold has ended by then, and the release
// only clears up. It names this one hold, so it can harm no other. Elsewhere it is what frees the lock, and Close hands
// it to releaseLater. The caller holds Machine.Mu, and has dropped g.
func (g *EngineHold) releaseWhenExpired(after time.Duration) {
	c := g.Lock.Core
	g.RenewLast()
	own := &LateRelease{g.Lock, g.ReleaseRequest(), c.Now().Plus(after)}
	if c.LeftToExpire == nil {
		c.LeftToExpire = make(map[*LateRelease]struct{})
	}
	c.LeftToExpire[own] = struct{}{}
	c.Emit(Effect{Verb: ReleaseAfter, Late: own, After: after})
}

// RenewLast has g, which is left to run out, renewed once more if the engine has less for it than a lease from the last
// renewal. A grant that came by a push is like that until it is claimed, and so is one that was retained until a moment
// ago. The caller holds Machine.Mu.
func (g *EngineHold) RenewLast() {
	c, now := g.Lock.Core, g.Lock.Core.Now()
	l := g.Holder()
	if !c.HasLeases() || l == nil || now >= g.TrustEnd() || g.Window.Over() >= g.Renewed.Plus(l.Lock.Terms.Lease) {
		return
	}
	last := []PendingRenewal{g.RenewalFor(l.Lock.Terms.Lease, now)}
	c.Emit(Effect{Verb: SendLastRenewal, Batch: last, After: g.TrustLeft(now)})
}

// IsPending reports whether any hold on g is pending: nobody but its holder may give that back. The caller holds
// Machine.Mu.
func (g *EngineHold) IsPending() bool {
	for l := range g.All() {
		if l.Pending > 0 {
			return true
		}
	}
	return false
}

// LeaveAtClose is leavePending for one grant. The caller holds Machine.Mu.
func (g *EngineHold) LeaveAtClose() {
	c := g.Lock.Core
	g.Phase = grants.Abandoned
	c.Shell.LeftPending(g)
}

// Ending is something that ends with a hold.
type Ending struct {
	Cancel context.CancelCauseFunc
	Stop   func() bool // no longer waits for an earlier end; nil if there is none

	place int     // in endings.all, from 1 on; 0 while it is not there
	over  bool    // it has ended before it was added
	next  *Ending // in endings.over
}

// End cancels w. It runs the user's functions.
func (w *Ending) End(cause error) {
	if w.Stop != nil {
		w.Stop() // or a goroutine would come for each, only to find that it is too late
	}
	w.Cancel(cause)
}

// Endings are the endings of a hold, of which there may be very many. They are guarded by their owner's mutex, except
// for over.
type Endings struct {
	All []*Ending
	// Those that have ended by themselves, to be taken out. When a common parent ends, each of them comes with a
	// goroutine of its own. Only the first takes the mutex: in a crowd of them nobody else would get it for long.
	over atomic.Pointer[Ending]
}

// Add puts w in, unless it is over already.
func (s *Endings) Add(w *Ending) {
	if !w.over {
		s.All = append(s.All, w)
		w.place = len(s.All)
	}
}

// Take empties s.
func (s *Endings) Take() []*Ending {
	all := s.All
	s.All = nil
	return all
}

// remove takes w out, which is over. It costs the same however many there are.
func (s *Endings) remove(w *Ending) {
	w.over = true
	if w.place == 0 || w.place > len(s.All) || s.All[w.place-1] != w { // it has not been added yet, or was taken
		return
	}
	last := len(s.All) - 1
	s.All[last].place, s.All[w.place-1] = w.place, s.All[last]
	s.All[last], s.All = nil, s.All[:last]
}

// Forget takes w out, which has ended by itself. It is called without the mutex, which lock and unlock are of.
func (s *Endings) Forget(w *Ending, lock, unlock func()) {
	for {
		w.next = s.over.Load()
		if s.over.CompareAndSwap(w.next, w) {
			break
		}
	}
	if w.next != nil { // whoever has put that there takes w out too
		return
	}
	lock()
	defer unlock()
	n := 0
	for w := s.over.Swap(nil); w != nil; n++ {
		if n%AtOnce == AtOnce-1 {
			unlock()
			lock()
		}
		next := w.next
		s.remove(w)
		w = next
	}
}
