package interlock

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

// release ends the hold because its owner, or Close, gives it up. It sends nothing. The caller holds Client.mu.
func (l *Lease) release(now trust.Instant) {
	l.released = true
	l.finish(now)
}

// lose ends the hold as a loss. Either hold of an upgrade pair ends both. cause may be nil. The caller holds Client.mu.
func (l *Lease) lose(reason LostReason, cause error) {
	c, end := l.m.c, l.lasted()
	var inner *Lease
	var other *grant
	if l.upgradePair != nil {
		l, inner, other = l.splitLostPair()
	}
	// Something that nobody can stop is under way. So nobody gives the lock back, neither here nor when the last hold
	// beside this one ends.
	if l.pending > 0 {
		l.g.Phase = grants.Abandoned
	}
	lost := l.lostError(reason, cause)
	// The owner has given the hold up for a condition, and the engine is being asked. That is no loss; Cond.Wait
	// reports what became of it.
	if l.listeners != nil && l.listeners.condWait != nil {
		l.listeners.condWait.overtaken(lost)
		return
	}
	if inner != nil {
		inner.loss = lost // for whoever is asking for more time on its grant
		inner.finish(end)
	}
	// loss first: finish tells the listeners how the hold has ended.
	l.loss = lost
	l.finish(end)
	if other != nil {
		c.vacate(other, l)
	}
	// Another client has adopted the hold, so nothing was lost, and the Observer hears of a release.
	if reason == LostAdopted {
		c.shell.adopted(l)
		return
	}
	c.shell.lost(l, lost)
}

// lasted returns until when a hold that is lost now was trusted. That is until its time was over, however late that is
// noticed, or until now if the engine reports the loss earlier. The caller holds Client.mu.
func (l *Lease) lasted() trust.Instant { return min(l.m.c.now(), l.end, l.trusted()) }

// lostError returns the error that says that l was lost. The caller holds Client.mu.
func (l *Lease) lostError(reason LostReason, cause error) *LostError {
	key := l.m.key()
	return &LostError{Kind: key.Kind, Name: key.Name, Token: l.token(), Reason: reason, Cause: cause}
}

// finish ends the hold as of the instant end: it wakes all that wait for that, and takes the hold off its grant.
// Foreign code, such as the cancellation of contexts, runs after Client.mu is given up. The caller holds Client.mu.
func (l *Lease) finish(end trust.Instant) {
	c := l.m.c
	l.end = end
	// Acquired has not returned yet. Whoever calls it tells the end afterwards, so that the Observer never hears of an
	// end before its beginning.
	if l.announced == unannounced {
		l.announced = endOwed
	}
	l.g.holds.remove(ofGrant, l)
	if l.g.holds.first == nil {
		l.g.last = l
	}
	if l.listeners == nil {
		return
	}
	if l.listeners.lost != nil && l.loss != nil {
		close(l.listeners.lost)
	}
	// An Upgrade or Downgrade that waits has nothing left to convert.
	if w := l.listeners.conversion; w != nil && !w.answered {
		w.leave()
		w.answer(l.ended())
	}
	if contexts := l.listeners.contexts.take(); len(contexts) > 0 {
		c.emit(effect{verb: cancelContexts, contexts: contexts, cause: l.ended()})
	}
}

// expire ends g if its trust window is over, and those of its holds whose own end has come (NoRenew, MaxHold). It reads
// no clock, so that one judgement is made at one instant. The caller holds Client.mu.
func (c *core) expire(g *grant, now trust.Instant) {
	if g.Phase == grants.Gone {
		return
	}
	if end := g.deadline(); now >= end {
		c.loseAndRelease(g, g.LossReason(&c.env, now, end, g.renewing()))
		return
	}
	// The delay comes first: see grant.delay.
	for l := range g.holds.all(ofGrant) {
		if now >= l.end {
			// Before lose: see grant.delay.
			g.delay(l, now)
			l.lose(driver.LostExpired, nil)
		}
	}
	// Its last hold has ended by its own time. Nobody has unlocked it, so it goes back here.
	if g.holds.first == nil && !g.Between && (g.Phase == grants.Abandoned || !g.keepForCooldown()) {
		c.loseAndRelease(g, driver.LostExpired)
	}
}

// loseAndRelease loses g on this process's own judgement. The engine may still count it as held, so it is released as
// soon as the engine can be reached. It must not block others for longer than it protects anybody. The caller holds
// Client.mu.
//
// The release begins after the holder's contexts have been cancelled. Otherwise another owner could get in before the
// holder is told.
func (c *core) loseAndRelease(g *grant, reason LostReason) {
	for l := range g.holds.all(ofGrant) {
		g.delay(l, c.now())
	}
	// Everything about the release is read before lose, which drops g and its cooldown.
	give, left := g.releaseRequest(), g.Phase == grants.Abandoned || g.isPending()
	give.Keep = g.keep()
	after := g.runOutAfter()
	c.lose(g, reason, g.cause(reason))
	// Its holder asked that nobody give it back; see Lease.Abandon and Lease.Pending.
	if left {
		g.runOut(after)
		return
	}
	c.settle(g.m, give)
}

// lose ends g and all its holds as a loss. The waiters behind g are sent to the engine at once: the loser may never
// call Unlock, so they must not wait for it. The caller holds Client.mu.
func (c *core) lose(g *grant, reason LostReason, cause error) {
	if g.Phase == grants.Gone {
		return
	}
	for l := range g.holds.all(ofGrant) {
		l.lose(reason, cause)
	}
	g.drop()
	c.askFor(g.m)
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
	case **UnavailableError, **RefusedError, **HeldError, **LostError:
		return false
	}
	return errors.As(e.err, t)
}

// classes are the errors by which callers tell failures apart.
var classes = []error{
	ErrHeld, ErrLost, ErrReleased, ErrUnavailable, ErrRefused, ErrUnsupported, ErrClosed, ErrDeadlock, ErrNested,
	ErrConflict, ErrNotHeld,
	context.Canceled, context.DeadlineExceeded,
}

// hasFailed notes how a renewal of g failed. Few renewals fail, so the errors stand in a map beside the grants. The
// caller holds Client.mu.
func (g *grant) hasFailed(err error) {
	g.Failed = true
	if own, is := err.(*UnavailableError); is && own.Err != nil { //nolint:errorlint // only this says that nobody knows
		err = own.Err
	}
	c := g.m.c
	if c.failures == nil {
		c.failures = make(map[*grant]error)
	}
	c.failures[g] = err
}

// hasSucceeded forgets that a renewal has failed. The caller holds Client.mu.
func (g *grant) hasSucceeded() {
	g.Failed = false
	delete(g.m.c.failures, g)
}

// cause returns what led to the loss of g for that reason, as far as this process knows, or nil. The caller holds
// Client.mu.
func (g *grant) cause(reason LostReason) error {
	if err := g.m.c.failures[g]; err != nil && reason == driver.LostUnconfirmed {
		return &renewalError{err}
	}
	return nil
}

// goneError says how g has ended, to a caller that was about to use it. The caller holds Client.mu.
func (g *grant) goneError() error {
	if l := g.last; l != nil && l.loss != nil {
		return l.ended()
	}
	return ErrReleased
}

// leave ends g in this process and lets it run out. The caller holds Client.mu.
func (g *grant) leave() {
	after := g.runOutAfter()
	g.drop()
	g.runOut(after)
	g.m.c.askFor(g.m) // the waiters here stand in the engine's line now
}

// runOutAfter returns how long g is kept when it is left to run out. That is one lease, as after a crash, or its
// cooldown if that is longer. It must be read before drop, which forgets the cooldown. The caller holds Client.mu.
func (g *grant) runOutAfter() time.Duration { return max(g.Asked, g.m.p.Lease, g.cooldown()) }

// runOut releases g after that time. On engines with leases the hold has ended by then, and the release only clears up.
// It names this one hold, so it can harm no other. Elsewhere it is what frees the lock, and Close hands it to
// releaseLater. The caller holds Client.mu, and has dropped g.
func (g *grant) runOut(after time.Duration) {
	c := g.m.c
	g.renewLast()
	own := &lateRelease{g.m, g.releaseRequest(), c.now().Plus(after)}
	if c.runningOut == nil {
		c.runningOut = make(map[*lateRelease]struct{})
	}
	c.runningOut[own] = struct{}{}
	c.emit(effect{verb: releaseAfter, late: own, after: after})
}

// renewLast has g, which is left to run out, renewed once more if the engine has less for it than a lease from the last
// renewal. A grant that came by a push is like that until it is claimed, and so is one that was retained until a moment
// ago. The caller holds Client.mu.
func (g *grant) renewLast() {
	c, now := g.m.c, g.m.c.now()
	l := g.holder()
	if !c.hasLeases() || l == nil || now >= g.deadline() || g.Window.Over() >= g.Renewed.Plus(l.m.p.Lease) {
		return
	}
	last := []pendingRenewal{g.renewalFor(l.m.p.Lease, now)}
	c.emit(effect{verb: sendLastRenewal, batch: last, after: g.remaining(now)})
}

// isPending reports whether nobody but its holder may give l back. Either hold of an upgrade pair stands for both. The
// caller holds Client.mu.
func (l *Lease) isPending() bool {
	return l.pending > 0 || l.upgradePair != nil && l.upgradePair.pending > 0
}

// isPending reports whether any hold on g is pending. The caller holds Client.mu.
func (g *grant) isPending() bool {
	for l := range g.holds.all(ofGrant) {
		if l.isPending() {
			return true
		}
	}
	return false
}

// leaveAtClose is leavePending for one grant. The caller holds Client.mu.
func (g *grant) leaveAtClose() {
	c := g.m.c
	g.Phase = grants.Abandoned
	c.shell.leftPending(g)
}

// ending is something that ends with a hold.
type ending struct {
	cancel context.CancelCauseFunc
	stop   func() bool // no longer waits for an earlier end; nil if there is none

	place int     // in endings.all, from 1 on; 0 while it is not there
	over  bool    // it has ended before it was added
	next  *ending // in endings.over
}

// end cancels w. It runs the user's functions.
func (w *ending) end(cause error) {
	if w.stop != nil {
		w.stop() // or a goroutine would come for each, only to find that it is too late
	}
	w.cancel(cause)
}

// endings are the endings of a hold, of which there may be very many. They are guarded by their owner's mutex, except
// for over.
type endings struct {
	all []*ending
	// Those that have ended by themselves, to be taken out. When a common parent ends, each of them comes with a
	// goroutine of its own. Only the first takes the mutex: in a crowd of them nobody else would get it for long.
	over atomic.Pointer[ending]
}

// add puts w in, unless it is over already.
func (s *endings) add(w *ending) {
	if !w.over {
		s.all = append(s.all, w)
		w.place = len(s.all)
	}
}

// take empties s.
func (s *endings) take() []*ending {
	all := s.all
	s.all = nil
	return all
}

// remove takes w out, which is over. It costs the same however many there are.
func (s *endings) remove(w *ending) {
	w.over = true
	if w.place == 0 || w.place > len(s.all) || s.all[w.place-1] != w { // it has not been added yet, or was taken
		return
	}
	last := len(s.all) - 1
	s.all[last].place, s.all[w.place-1] = w.place, s.all[last]
	s.all[last], s.all = nil, s.all[:last]
}

// forget takes w out, which has ended by itself. It is called without the mutex, which lock and unlock are of.
func (s *endings) forget(w *ending, lock, unlock func()) {
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
		if n%atOnce == atOnce-1 {
			unlock()
			lock()
		}
		next := w.next
		s.remove(w)
		w = next
	}
}
