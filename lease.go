package interlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence/stamp"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// What the owner of a hold has in hand, and what it is told: token, stamp, end, contexts. Everything here judges at
// this process's own clock and asks no engine. release.go ends a hold, lease_extend.go and hold_convert.go change it,
// and the other lease_* files have one method each.

// Lease is one hold of a lock: the result of Lock, and the only thing that can unlock it. It is safe for concurrent
// use. The zero value cannot be used, nor can a copy: methods say so in their error, or panic where they return none.
//
// A hold ends by [Lease.Unlock], by [Client.Close], or by being lost. It is lost when its trust window ends without a
// confirmed renewal, or when the engine says that it is gone. It is lost, too, when its fixed lease or MaxHold ends, or
// when this machine was suspended for too long. From that moment on another owner may be inside, so the holder has to
// stop. Lost is closed, contexts made by Context are cancelled, and Err, Stamp and Unlock say so. They say so in time,
// by this process's own clock, whatever the network does. They cannot reach into a process that stands still. For that,
// give [Lease.Stamp] to the resource.
type Lease core.Lease

// hold returns what the client knows of l; nil of a nil Lease.
func (l *Lease) hold() *core.Hold { return (*core.Lease)(l).Hold() }

// leaseOf returns what the user of h has in hand.
func leaseOf(h *core.Hold) *Lease { return (*Lease)(h.Lease()) }

// handOver is leaseOf for the results of a call.
func handOver(h *core.Hold, err error) (*Lease, error) { return leaseOf(h), err }

// Kind returns the kind of lock that is held.
func (l *Lease) Kind() Kind { return l.key().Kind }

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.key().Name }

// key returns the lock's key. It panics on a zero value, for methods that return no error.
func (l *Lease) key() driver.Key {
	h := l.hold()
	if h == nil || h.Lock == nil {
		panic(errNoLease.Error())
	}
	return h.Lock.Key()
}

// Owner returns the owner's name, or for an anonymous owner the id that operators see. It never changes.
func (l *Lease) Owner() string {
	h := l.hold()
	l.key()
	return h.Owner.ID
}

// Token returns the fencing number of this acquisition. The engine mints it in the step that grants the lock. It is
// below 2^63, and larger than that of every earlier acquisition of this lock. What that rests on is in the engine's
// Guarantees. Re-entry does not change it. Give resources the whole [Lease.Stamp].
//
// An upgrade brings a new one, which all holds of its owner on this lock have from then on. Token can be called after
// the hold has ended, and asks no engine.
func (l *Lease) Token() uint64 {
	shell.PanicOn(l.checkMade())
	return shell.TokenOf(l.hold())
}

// Stamp returns what a fence at the resource checks: a fence.Stamp, which is the same type. It reports false after the
// hold has ended: a holder that may be overtaken must not begin a write. It also reports false for a semaphore with a
// limit above 1, whose holders are inside together, in no order that a fence could check. It asks no engine.
func (l *Lease) Stamp() (s stamp.Stamp, ok bool) {
	h := l.hold()
	shell.PanicOn(l.checkMade())
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Machine.Now())
	if h.Ended() != nil || h.Lock.Terms.Share.Limit > 1 {
		return stamp.Stamp{}, false
	}
	return stamp.Stamp{Token: h.Token(), Nonce: h.Engine.NonceOf(h.Pass), Shared: h.Reads()}, true
}

// Err returns nil while the hold may be trusted, a *LostError after it was lost, ErrReleased after it was released, and
// [ErrAdopted] after another client has adopted it. It looks at the clock itself, so it never returns nil after
// Deadline, even if the scheduler is late. It asks no engine.
func (l *Lease) Err() error {
	if err := l.checkMade(); err != nil {
		return err
	}
	return shell.EndOf(l.hold())
}

// Deadline returns the instant until which the hold is trusted without another renewal. Each confirmed renewal moves it
// on. On engines whose holds last as long as the process it is the zero time, unless NoRenew or MaxHold set an end.
// After the hold has ended it is the instant at which it ended, which may be before that was noticed. It asks no
// engine.
func (l *Lease) Deadline() time.Time {
	h := l.hold()
	shell.PanicOn(l.checkMade())
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Machine.Now())
	if h.Ended() != nil {
		return c.Time(h.End)
	}
	return c.Time(min(h.End, h.Trusted()))
}

// Lost returns a channel that is closed when the hold is lost, or when another client has adopted it ([Lease.Handle]).
// A release does not close it. All calls return the same channel. It costs no goroutine.
func (l *Lease) Lost() <-chan struct{} {
	h := l.hold()
	shell.PanicOn(l.checkMade())
	c := shell.ClientOfLock(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Machine.Now())
	listeners := h.Listening()
	if listeners.Lost == nil {
		listeners.Lost = make(chan struct{})
		if h.Loss != nil {
			close(listeners.Lost)
		}
	}
	return listeners.Lost
}

// Context returns a context for the work under the lock. It is cancelled when parent is, when the hold is lost (its
// cause is then the *LostError) and when the hold is released (its cause is then ErrReleased). It carries the owner: a
// Lock with it, or with a context derived from it, re-enters. All goroutines that use it are this owner, so the lock
// does not exclude them from each other.
//
// Pass the context of the work, not one with the time limit of the acquisition. A nil parent panics. Each call makes a
// new context, which the lease remembers until either of the two ends.
func (l *Lease) Context(parent context.Context) context.Context {
	shell.PanicOn(shell.CheckCall(l.checkMade(), parent))
	return shell.HoldContext(parent, l.hold())
}

// Unlock ends this hold. The lock becomes free when the owner's last hold on it ends.
//
// If the hold was lost meanwhile, Unlock changes nothing in the engine and returns the *LostError: another owner may be
// inside, so do not retry. The error of a second Unlock matches ErrReleased.
//
// ctx bounds only the waiting for the engine's confirmation, so Unlock needs no other context than the call's: it
// releases the lock although ctx is already cancelled, and then waits 40 ms for the confirmation. A program that has to
// know the outcome, or ends right after it, passes context.WithoutCancel with a time limit of its own. If no
// confirmation comes in time, Unlock returns an *UnavailableError, and if the engine refuses a *RefusedError at once.
// In both cases this process no longer holds the lock. The release goes on in the background until its outcome is
// known, or the hold must have ended by itself (see [driver.Driver]).
//
// It costs one round trip, or none when the lock passes on to another goroutine of this process, when the client
// retains it, or when the owner has further holds. When goroutines of this process wait but others have their turn
// first, engines that can release and queue again in one step do so in the background. Unlock then returns nil without
// the engine's confirmation.
func (l *Lease) Unlock(ctx context.Context) error {
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	return shell.Unlock(ctx, l.hold())
}
