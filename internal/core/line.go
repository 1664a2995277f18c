package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Line is the line of goroutines of this process that wait for one lock, first come, first served. The engine knows
// only one waiter for the whole line: the queue's fetch asks on behalf of whoever is first. A grant then passes from
// owner to owner inside the process for as long as grants.Grant.mayPass allows. The queue exists only while somebody
// waits or a request is under way.
//
// Guarded by Machine.Mu.
type Line struct {
	Core *Machine
	Lock *Lock // of whoever came first; the others have the same LineKey

	Waiters waiterList
	Request *Request // the request on behalf of the line; nil if none is under way
}

// LineKey is what waiters must have in common to be served by the same request. The engine grants one lease, one delay
// and one kind of renewal for all of them. Mutexes of the same name with other options have queues of their own, and
// compete in the engine.
type LineKey struct {
	driver.Key
	lease   time.Duration
	delay   time.Duration // LockOptions.LockDelay, which the engine learns from the request
	noRenew bool
}

// LineKey returns the key of the line in which requests for m wait.
func (m *Lock) LineKey() LineKey {
	return LineKey{Key: m.Key(), lease: m.Terms.Lease, delay: m.Terms.LockDelay, noRenew: m.Terms.NoRenew}
}

// LineFor returns the queue for m, and makes it if nobody waits yet. The caller holds Machine.Mu.
func (c *Machine) LineFor(m *Lock) *Line {
	q := c.Lines[m.LineKey()]
	if q == nil {
		q = &Line{Core: c, Lock: m}
		c.Lines[m.LineKey()] = q
	}
	return q
}

// Tidy forgets the queue when nothing is in it, so that a client keeps nothing of locks that are no longer in use. The
// caller holds Machine.Mu.
func (q *Line) Tidy() {
	if q.Request != nil || q.Waiters.First != nil {
		return
	}
	// A fetch that nobody waits for any more may outlive its queue. It must not delete a later queue of the same key.
	if at := q.Lock.LineKey(); q.Core.Lines[at] == q {
		delete(q.Core.Lines, at)
	}
}

// InTheWay returns the holder that the engine has named to the line's request, or nil if it has named none. The caller
// holds Machine.Mu.
func (q *Line) InTheWay() *driver.HeldError {
	if q.Request == nil {
		return nil
	}
	return q.Request.Held
}

// Remove takes w out of the line. If w was the last, the request is cancelled: nobody would use its answer. If w led
// the request, another goroutine goes on with it. The caller holds Machine.Mu.
func (q *Line) Remove(w *Waiter) {
	q.Waiters.drop(w)
	w.Hold.Owner.Waits.Add(-1)
	switch f := q.Request; {
	// The line waits for a grant of this process, and asks nothing.
	case f == nil:
	case q.Waiters.First == nil:
		f.Cancel()
		// The driver may return much later. done then finds that it is no longer the queue's fetch and gives its answer
		// back.
		q.Request = nil
	case f.Leader == w: // its goroutine leaves; goOnAlone asks again for the others
		f.Call.End()
	}
	q.Tidy()
}

// Serve gives g to the first in line. The caller holds Machine.Mu and knows that somebody waits.
func (q *Line) Serve(g *EngineHold, local bool) {
	w := q.Waiters.First
	w.Grant(g, local)
	q.Remove(w)
	g.AddSameOwner()
}

// AddSameOwner gives g to every other waiter of the same owner. The owner's goroutines may depend on each other, so one
// of them must not wait while another holds the lock. The caller holds Machine.Mu.
func (g *EngineHold) AddSameOwner() {
	o := g.Holder().Owner
	if g.Lock.Terms.Share.Direct {
		g.addSameOwnerDirect(o)
		return
	}
	// The count makes the common case free: without it each grant would walk all lines.
	if o.Waits.Load() == 0 {
		return
	}
	g.Lock.Core.Shell.SuspectDeadlock(o)
	// The same owner may wait in another queue of this lock, with other options.
	for _, q := range g.Lock.Core.Lines {
		if q.Lock.Key() != g.Lock.Key() {
			continue
		}
		q.Waiters.Each(func(w *Waiter) {
			if w.Hold.Owner == o {
				w.Grant(g, true)
				q.Remove(w)
			}
		})
	}
	g.addSameOwnerCandidates(o)
}

// addSameOwnerCandidates gives g to waiters of the same owner that stand in no line: candidates of an election, who
// have a value of their own, whose owner leads already. Their requests are undone. Named owners are left to the engine,
// which re-enters them by itself, and tries do not wait. The caller holds Machine.Mu.
func (g *EngineHold) addSameOwnerCandidates(o *Owner) {
	if o.Named {
		return
	}
	for w := range g.Lock.Core.LinesOfOne {
		if w.Hold.Owner == o && w.Hold.Lock.Key() == g.Lock.Key() && !w.Request.Ask.Try {
			w.Withdraw()
			w.Grant(g, true)
		}
	}
}

// Fail answers everybody in line with err, and empties the line. The caller holds Machine.Mu.
func (q *Line) Fail(err error) {
	q.Waiters.Each(func(w *Waiter) {
		w.Answer(err)
		q.Remove(w)
	})
}

// StartRequest asks the engine on behalf of the line, in a goroutine of its own. It does nothing if a grant of this
// process will pass to the line, or if a request is under way. give, if not nil, is released in the same step as the
// request. The caller holds Machine.Mu.
func (q *Line) StartRequest(give *driver.Release) {
	if f := q.PrepareRequest(give); f != nil {
		q.Core.Emit(Effect{Verb: SendRequest, Request: f})
	}
}

// PrepareRequest returns the fetch that StartRequest starts, or nil if there is nothing to ask. Then give is released
// by itself, in the background. The caller holds Machine.Mu.
func (q *Line) PrepareRequest(give *driver.Release) *Request {
	c := q.Core
	if q.Request != nil || c.Passing(q.Lock) != nil || q.Waiters.First == nil || c.Closed {
		if give != nil {
			c.ReleaseInBackground(q.Lock, give)
		}
		q.Tidy()
		return nil
	}
	f := c.Shell.NewRequest(q.Waiters.First, false)
	f.Line, f.Give = q, give
	// The process has passed the lock on for as long as it may and still has waiters, so it asks for the largest block
	// of tokens next. See firstPasses.
	if give != nil && f.Ask.Tokens > 1 {
		f.Ask.Tokens = c.Env.LocalHandoffs + 1
	}
	q.Request = f
	return f
}

// AskFor asks the engine on behalf of the line for m, if there is one: what the line waited for has gone. The caller
// holds Machine.Mu.
func (c *Machine) AskFor(m *Lock) {
	if q := c.Lines[m.LineKey()]; q != nil {
		q.StartRequest(nil)
	}
}

// waiterList is a queue's waiters in the order in which they came. It is a linked list, so that any one of thousands
// can leave at the same cost. A slice would move half of the line for each context that ends. Guarded by Machine.Mu.
type waiterList struct {
	First, last *Waiter
}

// Push puts w at the end.
func (n *waiterList) Push(w *Waiter) {
	w.before, w.standing = n.last, true
	if n.last == nil {
		n.First = w
	} else {
		n.last.behind = w
	}
	n.last = w
}

// drop takes w out. It does nothing if w is not in the list. The owner's count of waits is kept by Line.Remove, which
// must come once for each waiter.
func (n *waiterList) drop(w *Waiter) {
	if !w.standing {
		return
	}
	if w.before == nil {
		n.First = w.behind
	} else {
		w.before.behind = w.behind
	}
	if w.behind == nil {
		n.last = w.before
	} else {
		w.behind.before = w.before
	}
	w.before, w.behind, w.standing = nil, nil, false
}

// Each calls f for every waiter, the first in line first. f may take out the waiter that it is called for, and no
// other.
func (n *waiterList) Each(f func(*Waiter)) {
	for w := n.First; w != nil; {
		behind := w.behind
		f(w)
		w = behind
	}
}

// Waiter is one Lock or TryLock under way. It belongs to the goroutine of its caller; other goroutines answer it under
// Machine.Mu and wake it by closing ready.
type Waiter struct {
	Hold *Hold // the owner and the lock; it becomes a hold when the wait succeeds
	Call
	Line    *Line    // in whose line it stands; nil if it stands in none
	Request *Request // the request on behalf of this waiter alone; nil if it stands in a line

	before, behind *Waiter // neighbours in the line; see waiterList
	standing       bool    // it is in the line
	Fresh          bool    // no request has used its owner's id yet; guarded by Machine.Mu

	Ready chan struct{} // closed by answer; nil for a waiter on which nobody blocks

	Announce func() // tells the Observer that w waits; nil once called or if nobody listens; guarded by Machine.Mu

	Alongside *EngineHold // the grant of its owner beside which it asks; nil if it asks on its own
	Converts  *Hold       // the hold that a conversion moves; nil for a call that gets a hold of its own
	// what converts held before, if nobody holds it any more; GiveLeft releases it; guarded by Machine.Mu
	Left *PendingRelease

	Blocker *Hold             // of this process, in the way when w came; nil if none; guarded by Machine.Mu
	HeldBy  *driver.HeldError // by the engine's last word; nil until it says so; guarded by Machine.Mu
	Broken  error             // why the engine has been silent since then; guarded by Machine.Mu
	Doubt   bool              // the outcome of an earlier attempt is unknown; guarded by Machine.Mu
	Late    uint8             // how many of its grants were over before it got them; guarded by Machine.Mu

	// Guarded by Machine.Mu; constant once ready is closed, so that said reads them without it.
	Answered bool
	Err      error
}

// Answer ends the wait of w with a success (nil) or err. It is called once. The caller holds Machine.Mu, and takes a
// waiter in a line out of it.
func (w *Waiter) Answer(err error) {
	w.Answered, w.Err = true, err
	if w.Request != nil {
		delete(w.Hold.Lock.Core.LinesOfOne, w)
	}
	if w.Ready != nil {
		close(w.Ready)
	}
}

// Grant ends the wait of w with a hold on g. local says that g passed on inside the process. The caller holds
// Machine.Mu.
func (w *Waiter) Grant(g *EngineHold, local bool) {
	if w.Converts != nil {
		w.Left = w.Converts.convertTo(g)
		w.Answer(nil)
		return
	}
	g.AddHold(w.Hold, w.Start, w.Hold.Lock.Core.Now(), local)
	w.Answer(nil)
}

// Decline gives back what w was granted in the instant in which its context ended. The caller of Lock does not wait for
// the engine to confirm that. The caller holds Machine.Mu.
func (w *Waiter) Decline() {
	if w.Converts == nil { // else the grant stays: Upgrade and Downgrade see it and succeed
		w.Hold.Decline()
	}
}

// MustWait records who is in the way of w, and tells the Observer once for each call that it waits. held is nil if a
// hold of this process is in the way. The caller holds Machine.Mu.
func (w *Waiter) MustWait(held *driver.HeldError) {
	if held != nil {
		w.HeldBy, w.Broken = held, nil
	}
	if w.Announce != nil {
		w.Hold.Lock.Core.AfterUnlock(w.Announce)
		w.Announce = nil
	}
}

// Withdraw takes w out of its line, or cancels the request that is for w alone. The fetch undoes by itself whatever
// that request has left in the engine. The caller holds Machine.Mu.
func (w *Waiter) Withdraw() {
	if w.Request != nil {
		delete(w.Hold.Lock.Core.LinesOfOne, w)
		w.Request.Abandoned = true
		w.Request.Cancel()
		return
	}
	w.Line.Remove(w)
}

// HasBegun reports whether another owner is known to be in the way of w. From then on the wait survives broken
// connections; before, the first error ends it. The caller holds Machine.Mu.
func (w *Waiter) HasBegun() bool { return w.HeldBy != nil || w.Blocker != nil }

// AlreadyInside gives w a hold on the grant that its owner has, if another goroutine of that owner was quicker. Without
// this the owner would wait for itself. The caller holds Machine.Mu.
func (c *Machine) AlreadyInside(w *Waiter) bool {
	g := c.LiveEngineHold(w.Hold.Owner, w.Hold.Lock.Key())
	if g == nil {
		return false
	}
	g.AddHold(w.Hold, w.Start, c.Now(), true)
	return true
}

// Request is one acquisition that the engine is asked for: on behalf of a queue's line, or for one waiter alone (a try,
// a named owner, a conversion). A fetch for a line belongs to the queue and not to a waiter. So a waiter that gives up
// does not cost the others their place in the engine's queue. Undoing what a cancelled or ambiguous request may have
// left is the duty of the fetch, after the driver has returned.
type Request struct {
	Core      *Machine
	Line      *Line       // whose line it is for; nil if it is for one waiter alone
	Waiter    *Waiter     // the one waiter that it is for; nil if it is for a line
	Leader    *Waiter     // in whose goroutine it is asked first; nil if in one of its own; guarded by Machine.Mu
	Alongside *EngineHold // the grant beside which a conversion or re-entry asks; nil if it asks on its own
	Ask       driver.Request
	// what a successful answer becomes; made before the request, so that the driver can report its loss at any time
	Engine *EngineHold
	Ctx    context.Context //nolint:containedctx // belongs to the request, whichever goroutine runs it
	Cancel context.CancelFunc
	Call   CallContext     // what ctx is while the leader's goroutine asks; it costs nothing until a driver waits on it
	Give   *driver.Release // what is released in the same step; nil if nothing

	// of a candidate: closed once nothing of the request is left that could be granted; nil of all others
	Over chan struct{}
	// of a candidate: over of the request before it, which may still be undone; nil if there is none
	Undone chan struct{}

	// Guarded by Machine.Mu.
	Held      *driver.HeldError // who holds the lock, once the engine has said so
	Abandoned bool              // the waiter of only has left
	Withdrawn bool              // it is about to, and waits for over: nothing is asked again
	Settling  bool              // over is closed by the release of what the request may have left
	Idle      bool              // nothing is under way: it ended with an error, or a repetition has not been sent
}

// ErrAgain ends the wait of an owner that got in by another request meanwhile. AttemptDirect then asks once more,
// beside that hold.
var ErrAgain = errors.New("the owner has got in meanwhile")

// MayReenter reports whether w would wait for its own owner if that owner had a hold of the lock. Permits do not
// re-enter, a request beside a hold is one already, and the engine re-enters named owners.
func (w *Waiter) MayReenter() bool {
	return w.Hold.Lock.Terms.Share.Of != nil && w.Alongside == nil && !w.Hold.Owner.Named
}

// ErrReader refuses a write, or an upgrade, to an owner that only reads.
var ErrReader = fmt.Errorf("it only reads, and would wait for itself; take UpgradeableRLock to upgrade: %w",
	driver.ErrDeadlock)

// addSameOwnerDirect ends the other waits of o for this lock with ErrAgain, because o holds g now and they would wait
// for it. Each asks again beside g. The engine does so by itself for named owners. The caller holds Machine.Mu.
func (g *EngineHold) addSameOwnerDirect(o *Owner) {
	if g.Lock.Terms.Share.Of == nil { // permits: each call takes its own
		return
	}
	if o.several() {
		g.spreadToken(o)
	}
	if o.Named || o.Waits.Load() == 0 {
		return
	}
	for w := range g.Lock.Core.LinesOfOne {
		if w.Hold.Owner == o && w.Hold.Lock.Key() == g.Lock.Key() && w.Alongside == nil {
			w.Withdraw()
			w.Answer(ErrAgain)
		}
	}
}

// spreadToken gives the token of g, if g is an upgrade, to all holds of o on this lock. A fence that has seen the
// write's token would refuse a read with an older one, although both are the same owner's. The caller holds Machine.Mu.
func (g *EngineHold) spreadToken(o *Owner) {
	for _, l := range o.On(g.Lock.Key()) {
		if l.Lock.Core != g.Lock.Core || l.Ended() != nil {
			continue
		}
		for on := range l.EngineHolds() {
			on.TakeToken(&g.Grant)
		}
	}
}

// Call is what all attempts of one Lock, TryLock, Upgrade or the like have in common.
type Call struct {
	Start   trust.Instant // when the call began: Event.Waited counts from here
	Waiting *Announcement // nil if the Observer has no Waiting
}

// Announcement tells the Observer that a call waits: once, however many attempts the call takes, and never after its
// end. So a gauge of waiting calls can count up in Waiting and down in what ends the call.
type Announcement struct {
	Mu   sync.Mutex    // guards the others; never held while Waiting runs
	Told chan struct{} // closed when Waiting has returned; nil until it is called
	Over bool          // the call has ended, so Waiting must not be called any more
}

// HasOthers reports whether l's owner has another live hold of the same lock in this process. The caller holds
// Machine.Mu.
func (l *Hold) HasOthers() bool {
	return l.Owner.First(
		l.Lock.Core,
		l.Lock.Key(),
		func(other *Hold) bool { return other != l && other.Ended() == nil },
	) != nil
}
