package interlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence/stamp"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
)

// What the owner of a hold has in hand, and what it is told: token, stamp, end, contexts. Everything here judges at
// this process's own clock and asks no engine. internal/shell/release.go ends a hold.

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
	c := shell.ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Now())
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
	c := shell.ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Now())
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
	c := shell.ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Now())
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

// Abandon, and what leaves a lock to run out: the engine's lease where there is one, and elsewhere a timer of this
// process. locktx is its user; Pending is the other half: what must not be given back while its outcome is open.

// Abandon ends this hold without giving the lock back. It is renewed no more, and the lock becomes free when its lease
// has run out, as after a crash of this process. It is for work whose outcome is unknown, such as a transaction whose
// COMMIT was not answered. No other owner is to begin while that may still be under way. Package locktx uses it.
//
// Abandon returns at once. From then on Err says ErrReleased, contexts made by Context have ended,
// and the owner is out: its next Lock waits like everybody's. If the owner has further holds on this acquisition, they
// go on and are renewed. When the last of them has ended, however it ended, the lock is left to run out. Until then it
// cannot be given up for a condition ([Cond.Wait] returns ErrNested). Like Unlock, Abandon returns the *LostError after
// a loss, and an error that matches ErrReleased after a release.
//
// On engines with leases the lock is free one lease after the last renewal, also if the process ends or the client is
// closed meanwhile. The lease that counts is the longest that was asked for, as by Extend. The engine may have less
// than that for a lock of which it was not asked yet: one that was pushed to this client, or taken over while retained.
// Then Abandon has it renewed once more, in the background; Close waits for that. If the process ends before, or the
// engine does not answer, such a lock is free within 2 s. Where a hold lasts as long as a session or a process, this
// client keeps it for one lease from now. If the rest of its MinHold is longer, it keeps it for that. It then gives it
// back in the background, also if the client is closed meanwhile. The end of the process, or of the session, frees the
// lock at once.
func (l *Lease) Abandon() error {
	h := l.hold()
	if err := l.checkMade(); err != nil {
		return err
	}
	c := shell.ClientOf(h.Lock)
	c.Lock()
	now := c.Now()
	h.Check(now)
	if err := h.Ended(); err != nil {
		c.Unlock()
		h.Owner.Remove(h) // as in Unlock
		return shell.Wrap("abandon", h.Lock.Key(), err)
	}
	for g := range h.EngineHolds() {
		g.Phase = grants.Abandoned
	}
	h.EndHold(now) // nothing is asked, so there is no confirmation to await
	c.Unlock()
	h.Owner.Remove(h)
	c.Config.Logger.Warn("interlock: lock left to run out", "lock", l.Name(), "engine", c.Traits.Engine,
		"token", l.Token(), "owner", h.Owner.ID)
	shell.TellReleased(h, nil)
	return nil
}

// Extend: a renewal in the caller's own time, sent by internal/shell/renew.go. Those of the scheduler go on beside it.

// Extend makes sure that the hold lasts at least d from now: once it has returned nil, Deadline is no earlier. On a
// hold with NoRenew this moves its end. It cannot go beyond MaxHold: then it returns an error and changes nothing. It
// blocks until the engine has answered, ctx ends, or half a lease is over.
//
// It costs one round trip on engines with leases, two for an upgraded hold, and none elsewhere. There a renewed hold
// lasts as long as its session or process anyway. An error that matches ErrUnavailable changes nothing that was known
// before. If an upgrade or a downgrade comes in between, what the hold has after it is extended, at the cost of further
// round trips.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	h := l.hold()
	if err := shell.CheckCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if d <= 0 || d > longest {
		return fmt.Errorf("interlock: extend %q: the duration %v must be more than 0 and at most %v", l.Name(), d,
			longest)
	}
	c := shell.ClientOf(h.Lock)
	end := c.Reading().Plus(d)
	// Again only if a conversion has moved the hold to another grant meanwhile.
	for {
		grants, err := shell.MayLast(h, d, end)
		if err != nil {
			return shell.NamedError(h, "extend", err)
		}
		err = c.RenewAll(ctx, grants, trust.LeaseFor(d))
		if last, ended := shell.ExtendedHold(h, grants, end, err); last {
			return shell.NamedError(h, "extend", shell.WithOperation("extend", h.Lock.Key(), ended))
		}
	}
}

// Handle gives a hold away as a text, and Adopt takes it over; docs/rationale.md, Adoption, has the decision.

// Handle returns a text by which another process goes on with this hold; see [Client.Adopt]. It asks no engine. The
// text is a secret: whoever has it can adopt the hold, or release it. It is one word of up to about 2,000 characters
// and has no URL and no password in it.
//
// Until somebody adopts the hold it stays this one and is renewed as before. It can be released, and then the handle is
// worth nothing. When it has been adopted, Err returns [ErrAdopted], Lost is closed, and contexts made by Context have
// ended. From then on nothing of this lease is renewed or released, whatever is called and however late. The engine
// says so at once, or if that message is lost, with the answer to the next renewal. So do everything that must come
// before the other process goes on before you send the handle.
//
// A process that ends before the hold is adopted calls [Lease.Abandon] and not Unlock: the hold can be adopted until
// its lease has run out. The same holds after a crash. A hold that has a handle neither passes on inside this process
// nor is retained. Each call returns a handle of the same hold, and the first that is adopted counts.
//
// A hold of an owner that was named by [WithOwner] has no handle (ErrUnsupported). Lock as the same owner in the other
// process, and unlock here. An owner with further holds on the lock gets ErrNested; an upgradeable read and an upgraded
// hold get ErrUnsupported. Holds that last as long as a session or process cannot travel. On ZooKeeper, etcd, SQL and
// files, and on Redlock, Handle returns ErrUnsupported with the reason.
func (l *Lease) Handle() (string, error) {
	h := l.hold()
	if err := l.checkMade(); err != nil {
		return "", err
	}
	c := shell.ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Now())
	if err := shell.MayTravel(h); err != nil {
		return "", shell.Wrap("handle of", h.Lock.Key(), err)
	}
	// if it passed on, the handle would be that of another owner.
	if g := h.Engine; !g.Alone {
		g.Alone = true
		c.AskFor(g.Lock) // the waiters here waited for it to pass on
	}
	travels := driver.Handle{
		Engine: c.Traits.Engine,
		Store:  shell.StoreMark(c.Config.Store),
		Kind:   l.Kind(),
		Name:   l.Name(),
		ID:     h.Engine.ID,
		Token:  h.Token(),
		Lease:  h.Lock.Terms.Lease,
		Owner:  h.Owner.ID,
		Label:  h.Lock.Terms.Label,
	}
	if h.Lock.Terms.Share.Direct {
		travels.Mode, travels.Limit, travels.Weight = h.Mode(), h.Lock.Terms.Share.Limit, h.Lock.Terms.Share.Weight
	}
	return travels.Encode(), nil
}

// Pending marks a hold under which something is under way that nobody can stop. Abandon lets such a lock run out;
// internal/core/end.go and Close ask IsPending before they would give it back.

// Pending says that something is under way under this hold which nobody can stop and whose outcome is not known yet,
// such as the COMMIT of a transaction. Until over is called, only the holder gives the lock back before its time.
// Everything else that would do so leaves it to run out instead, as [Lease.Abandon] does. That is the end of MaxHold,
// of a lease that is not renewed, or of trust, and [Client.Close]. Close first waits for over, for half of its
// CloseTimeout. Package locktx uses it.
//
// Nothing else changes. The hold is renewed and lost as before, Unlock gives it back, and Break by an operator takes it
// away. Pending asks no engine. It fails like Err when the hold has ended, and with ErrClosed when the client is being
// closed: then begin nothing. Call over in the end, once the holder has unlocked or abandoned the hold; further calls
// of it do nothing.
func (l *Lease) Pending() (over func(), err error) {
	h := l.hold()
	if err := l.checkMade(); err != nil {
		return nil, err
	}
	c := shell.ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	h.Check(c.Now())
	if err := h.Ended(); err != nil {
		return nil, shell.Wrap("use", h.Lock.Key(), err)
	}
	if c.Closed {
		return nil, shell.Wrap("use", h.Lock.Key(), ErrClosed)
	}
	h.Pending++
	c.Pending++
	done := false
	return func() {
		c.Lock()
		defer c.Unlock()
		if done {
			return
		}
		done = true
		h.Pending--
		c.Pending--
		if c.Pending == 0 && c.PendingDone != nil {
			close(c.PendingDone)
			c.PendingDone = nil
		}
	}, nil
}

// Wanted returns a channel that is closed when another process asks for the lock. A long job can then give way: it
// unlocks at the next good place and locks again.
//
// With [LockOptions].Retain the channel closes as soon as the other process asks. Without it, or if that message is
// lost, it closes with the next renewal. On ZooKeeper it closes as soon as the hold is a tenth of a second old. On etcd
// it closes when the other process has waited for a third of its session. The other process may have given up by then.
// Goroutines of this process do not count. The channel never closes for read/write locks, permits and named owners, nor
// on files, SQL and Redlock, which do not tell a holder. Wanted sends nothing.
func (l *Lease) Wanted() <-chan struct{} {
	h := l.hold()
	shell.PanicOn(l.checkMade())
	c := shell.ClientOf(h.Lock)
	c.Lock()
	defer c.Unlock()
	listeners := h.Listening()
	if listeners.Wanted == nil {
		listeners.Wanted = make(chan struct{})
		if h.Engine.Wanted {
			close(listeners.Wanted)
		}
	}
	return listeners.Wanted
}

// How a hold turns into one of another mode (Upgrade, Downgrade). The engine grants the other mode beside what the hold
// has, so that nobody gets in between, and the hold moves there. From then on its token, trust and end are those of the
// new grant.
//
// A downgrade gives back what the hold had. An upgrade keeps it, because a downgrade returns to it: the hold then rests
// on both (internal/core/convert.go), is lost with either, and gives both back. docs/rationale.md, Conversions,
// has the decision.

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
	c, at := shell.ClientOf(h.Lock), shell.ClientOf(h.Lock).NewCall()
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
	c := shell.ClientOf(h.Lock)
	c.Lock()
	if err := h.MayConvert(driver.Shared); err != nil {
		c.Unlock()
		return shell.Wrap("downgrade", h.Lock.Key(), err)
	}
	var left *core.PendingRelease
	if h.Below != nil {
		left = h.GoBack()
		c.Unlock()
	} else {
		w, err := shell.AskConversion(ctx, h, driver.Shared, core.Call{Start: c.Reading()}) // gives up Machine.Mu
		if w.Err != nil || !w.Answered {
			return shell.NamedError(h, "downgrade", shell.WithOperation("downgrade", h.Lock.Key(), err))
		}
		left = w.Left
	}
	return shell.NamedError(
		h,
		"downgrade",
		shell.WithOperation("downgrade", h.Lock.Key(), shell.GiveLeft(ctx, h, left)),
	)
}

var errNoLease = errors.New("interlock: Lease was not made by Lock")

// Adopt goes on with a hold that another process has given away by [Lease.Handle], or that "interlock acquire" has
// taken. In one step, with nobody in between, the hold becomes the lease that is returned, and the other process's
// lease ends. The new lease is renewed and unlocked like any other. The first to adopt a hold gets it. Everybody after
// that gets a *LostError, and so does whoever comes when the hold has ended.
//
// The lease has a new token: a fence that has seen its [Lease.Stamp] refuses what the other process still sends. So use
// that stamp once before you rely on it. Its owner is a new one without a name; its lease and label are those of the
// handle. Other LockOptions do not travel: MaxHold, MinHold and NoRenew end with the other process's lease.
//
// A handle of another engine gets ErrUnsupported, like one of another version of this package. A handle of another
// store, or of another database, prefix or name space, names a hold that is not there. The *LostError's Cause says so
// if the handle shows it. A hold of a named owner gets ErrUnsupported.
//
// If the engine does not answer (ErrUnavailable) the hold may have been adopted: it is then released in the background,
// which ends it. If another Adopt of the handle says that it is lost, it was adopted. It costs one round trip.
func (c *Client) Adopt(ctx context.Context, handle string) (*Lease, error) {
	s := c.in()
	if err := shell.CheckCall(s.CheckMade(), ctx); err != nil {
		return nil, err
	}
	adopter, err := s.Adopter()
	if err != nil {
		return nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	h, m, err := parseHandle(s, handle)
	if err != nil {
		return nil, err
	}
	at := s.NewCall()
	lease, err := shell.AdoptLock(ctx, m, adopter, h, at)
	if err != nil {
		shell.TellFailed(ctx, m, nil, at, err)
		return nil, err
	}
	shell.TellAcquired(ctx, m, lease, at)
	return leaseOf(lease), nil
}

// parseHandle returns what a handle says, and the lock with the options that it asks for.
func parseHandle(c *shell.Client, handle string) (h driver.Handle, m *core.Lock, err error) {
	if h, err = driver.ParseHandle(handle); err != nil {
		return h, nil, fmt.Errorf("interlock: adopt: %w", err)
	}
	key := driver.Key{Kind: h.Kind, Name: h.Name}
	if err = h.Of(c.Traits); err == nil && h.Named {
		err = fmt.Errorf("the hold is that of a named owner, which stays its own: lock as the same owner: %w",
			ErrUnsupported)
	}
	if err != nil {
		return h, nil, shell.Wrap("adopt", key, err)
	}
	o := &LockOptions{Lease: h.Lease, Label: h.Label}
	switch h.Kind {
	case driver.KindMutex:
		m = publicOf(c).Mutex(h.Name, o).inner()
	case driver.KindRWMutex:
		m = publicOf(c).RWMutex(h.Name, o).modeMutex(h.Mode)
	case driver.KindSemaphore:
		m = publicOf(c).Semaphore(h.Name, h.Limit, o).permits(h.Weight)
	case driver.KindElection:
		o.Label = ""
		m = publicOf(c).Election(h.Name, o).candidate(h.Label)
	default:
		return h, nil, shell.Wrap("adopt", key, fmt.Errorf("a lock of kind %q: %w", h.Kind, ErrUnsupported))
	}
	return h, m, m.Terms.Err
}

// checkMade also refuses a copy: the end of the hold would not reach it, and it would go on saying that it is held.
func (l *Lease) checkMade() error {
	h := l.hold()
	switch {
	case h == nil || h.Lock == nil:
		return errNoLease
	case h.IsCopy():
		return fmt.Errorf("interlock: %s %q: the Lease is a copy: use the one that Lock returned", h.Lock.Key().Kind,
			h.Lock.Key().Name)
	}
	return nil
}
