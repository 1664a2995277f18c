package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
)

// Lease is one hold of a lock: the result of Lock, and the only thing that can unlock it. It is safe for concurrent use.
//
// A hold ends by [Lease.Unlock], by [Client.Close], or by being lost. It is lost when its trust window ends without a
// confirmed renewal, when the engine says that it is gone, when its fixed lease or MaxHold ends, or when this machine was
// suspended for too long. From that moment on another owner may be inside, so the holder has to stop: Lost is closed,
// contexts made by Context are cancelled, and Err, Stamp and Unlock say so. They say so in time, by this process's own
// clock, whatever the network does; what they cannot do is reach into a process that stands still. For that, give
// [Lease.Stamp] to the resource.
type Lease struct {
	c     *Client
	g     *grant
	key   driver.Key
	owner *owner
	class string
	label string

	token uint64
	nonce string

	lease, renewal time.Duration
	noRenew        bool
	since          time.Time
	waited         time.Duration
	local          bool

	// Guarded by Client.mu.
	end     time.Time     // own end, by NoRenew or MaxHold; zero if none
	last    time.Time     // end of MaxHold, which Extend cannot move; zero if none
	ended   error         // *LostError or ErrReleased, once it has ended
	endedAt time.Time     // what Deadline says from then on
	lost    chan struct{} // made when asked for
	works   []*work       // contexts to cancel
}

// work is a context made by Lease.Context.
type work struct {
	cancel context.CancelCauseFunc
}

// Kind returns the kind of lock that is held.
func (l *Lease) Kind() Kind { return l.key.Kind }

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.key.Name }

// Owner returns the owner's name, or for an anonymous owner the id that operators see.
func (l *Lease) Owner() string { return l.owner.id }

// Token returns the fencing number of this acquisition. It is below 2^63, is minted by the engine in the step that grants
// the lock, and is larger than that of every earlier acquisition of this lock; what that rests on is in the engine's
// Guarantees. Re-entry does not change it. Give resources the whole [Lease.Stamp].
func (l *Lease) Token() uint64 { return l.token }

// Stamp returns what a fence at the resource checks. It reports false after the hold has ended.
func (l *Lease) Stamp() (s fence.Stamp, ok bool) {
	if l.Err() != nil {
		return fence.Stamp{}, false
	}
	return fence.Stamp{Token: l.token, Nonce: l.nonce}, true
}

// Err returns nil while the hold may be trusted, a *LostError after it was lost, and ErrReleased after it was released. It
// looks at the clock itself, so it never says nil after Deadline. It asks no engine.
func (l *Lease) Err() error {
	l.c.lock()
	defer l.c.unlock()
	l.check(l.c.now())
	return l.ended
}

// Deadline returns the instant until which the hold is trusted without another renewal. It moves on with each one. On
// engines whose holds last as long as the process it is the zero time, unless NoRenew or MaxHold set an end. After the
// hold has ended it is the instant at which it did.
func (l *Lease) Deadline() time.Time {
	l.c.lock()
	defer l.c.unlock()
	l.check(l.c.now())
	if l.ended != nil {
		return l.endedAt
	}
	return l.deadline()
}

// deadline is the earlier of the grant's trust window and the hold's own end. The caller holds Client.mu.
func (l *Lease) deadline() time.Time {
	end := l.g.deadline()
	if end.IsZero() || (!l.end.IsZero() && l.end.Before(end)) {
		return l.end
	}
	return end
}

// check notices that the hold's time is over. The caller holds Client.mu.
func (l *Lease) check(now time.Time) {
	if l.ended == nil {
		l.c.expire(l.g, now)
	}
}

// Lost returns a channel that is closed when the hold is lost. It is not closed by a release.
func (l *Lease) Lost() <-chan struct{} {
	l.c.lock()
	defer l.c.unlock()
	l.check(l.c.now())
	if l.lost == nil {
		l.lost = make(chan struct{})
		if errors.Is(l.ended, ErrLost) {
			close(l.lost)
		}
	}
	return l.lost
}

// Context returns a context for the work under the lock. It is cancelled when parent is, when the hold is lost (its cause
// is then the *LostError) and when the hold is released (its cause is then ErrReleased). It carries the owner: a Lock with
// it, or with a context derived from it, re-enters. All goroutines that use it are this owner, so the lock does not keep
// them from each other. Pass the context of the work, not one with the time limit of the acquisition.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, ownerKey{}, l.owner))
	w := &work{cancel: cancel}
	l.c.lock()
	l.check(l.c.now())
	ended := l.ended
	if ended == nil {
		l.works = append(l.works, w)
	}
	l.c.unlock()
	if ended != nil {
		cancel(ended)
		return ctx
	}
	// Forget the context when its parent has ended, or a long hold with many contexts would only ever grow.
	context.AfterFunc(ctx, func() { l.forget(w) })
	return ctx
}

func (l *Lease) forget(w *work) {
	l.c.lock()
	defer l.c.unlock()
	if i := slices.Index(l.works, w); i >= 0 {
		l.works = slices.Delete(l.works, i, i+1)
	}
}

// finish ends the hold with err, tells whoever waits for that, and takes it out of its grant. What calls foreign code
// happens after Client.mu is given up. The caller holds Client.mu.
func (l *Lease) finish(err error) {
	l.ended, l.endedAt = err, l.c.now()
	if i := slices.Index(l.g.holds, l); i >= 0 {
		l.g.holds = slices.Delete(l.g.holds, i, i+1)
	}
	if l.lost != nil && errors.Is(err, ErrLost) {
		close(l.lost)
	}
	if len(l.works) > 0 {
		l.c.cancelAfter(l.works, err)
		l.works = nil
	}
}

// lose ends the hold as a loss.
func (l *Lease) lose(reason LostReason, cause error) *LostError {
	lost := &LostError{Kind: l.key.Kind, Name: l.key.Name, Token: l.token, Reason: reason, Cause: cause}
	l.finish(lost)
	l.c.after(func() {
		e := l.event()
		e.Err = lost
		l.c.opts.Observer.lost(e)
		l.c.opts.Logger.Error("interlock: lock lost", "lock", l.key.Name, "engine", l.c.traits.Engine,
			"token", l.token, "owner", l.owner.id, "reason", string(reason), "err", cause)
	})
	return lost
}

// event describes the hold to an Observer.
func (l *Lease) event() Event {
	return Event{
		Kind: l.key.Kind, Name: l.key.Name, Class: l.class, Owner: l.owner.id, Token: l.token,
		Waited: l.waited, Held: time.Since(l.since), Local: l.local,
	}
}

// Extend makes sure that the hold lasts at least d from now: that Deadline is no earlier, once it has returned nil. On a
// hold with NoRenew this moves its end; beyond the MaxHold nothing goes. It costs one round trip on engines with leases,
// and none elsewhere: there a renewed hold lasts as long as its session or process anyway. An error that matches
// ErrUnavailable changes nothing that was known.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > longest {
		return fmt.Errorf("interlock: extend %q: the duration %v must be more than 0 and at most %v", l.key.Name, d, longest)
	}
	l.c.lock()
	now := l.c.now()
	l.check(now)
	ended, end := l.ended, now.Add(d)
	last := l.last
	l.c.unlock()
	if ended != nil {
		return ended
	}
	if !last.IsZero() && end.After(last) {
		return fmt.Errorf("interlock: extend %q by %v: its MaxHold ends in %v", l.key.Name, d, last.Sub(now).Round(time.Millisecond))
	}
	if l.c.renewer != nil {
		if err := l.c.renewNow(ctx, l.g, leaseFor(d)); err != nil {
			return err
		}
	}
	return l.moveEnd(end)
}

// moveEnd lengthens a fixed lease to end, if the hold still lives.
func (l *Lease) moveEnd(end time.Time) error {
	l.c.lock()
	defer l.c.unlock()
	l.check(l.c.now())
	if l.ended != nil {
		return l.ended
	}
	if l.noRenew && end.After(l.end) {
		l.end = end
	}
	l.c.reschedule(l.g)
	return nil
}
