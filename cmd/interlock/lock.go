// How run and sem take their lock: a try, which tells who is in the way, and then the wait. run.go comes here with an
// open engine and goes on with the lease; report.go puts the refusal into words. handle.go and fd.go have waits of
// their own, because they ask the driver and not the client.

package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// takeLock waits for the lock as the flags say. A signal leaves the queue and ends the wait with a *signalError. If the
// grant was faster than the signal, the lease is given back.
func (a *app) takeLock(
	ctx context.Context, e *engine, o *runOptions, name string, signals *signals,
) (*interlock.Lease, error) {
	ctx, done := signals.endWait(ctx)
	lease, err := a.waitForLock(ctx, e, o, name)
	done()
	var stopped *signalError
	if !errors.As(context.Cause(ctx), &stopped) {
		return lease, err
	}
	if lease != nil { // granted in the moment of the signal: give it back
		ctx, cancel := a.within(context.WithoutCancel(ctx))
		defer cancel()
		if err := lease.Unlock(ctx); err != nil {
			a.say("warning: the lock could not be given back: %s", message(err))
		}
	}
	return nil, stopped
}

// waitForLock tries once, so that it can say who is in the way, and then waits. The try has --timeout; the wait has
// what is left of --wait, or no end.
//
// The try costs one request. It shows within --timeout that an engine is out of reach; a wait without an end would go
// on for ever. And it knows the holder, for the message and for the error after the wait.
func (a *app) waitForLock(ctx context.Context, e *engine, o *runOptions, name string) (*interlock.Lease, error) {
	// The name is the owner's in every process. So a command inside the job re-enters the lock with --owner
	// "$INTERLOCK_OWNER".
	if o.owner != "" {
		ctx = interlock.WithOwner(ctx, o.owner)
	}
	m := o.locker(e.client, name)
	began := time.Now()
	lease, err := a.tryLock(ctx, m)
	var held *interlock.HeldError
	switch {
	case err == nil:
		a.tellAcquired(o, lease, began)
		return lease, nil
	// Neither granted nor held: out of reach, refused, another limit. Waiting would not help.
	case !errors.As(err, &held):
		return nil, err
	// No waitedError: "gave up after 0s" would puzzle the reader.
	case o.waitGiven && o.wait == 0:
		a.tellOrphaned(e, held)
		return nil, err
	}
	if a.tellWaiting(o.verbose, held) {
		a.tellOrphaned(e, held)
	}
	if lease, err = a.waitBehind(ctx, m, o, held, began); err == nil {
		a.tellAcquired(o, lease, began)
	} else if errors.Is(err, interlock.ErrHeld) {
		err = &waitedError{err, o.wait}
	}
	return lease, err
}

// waitBehind waits for a lock that held has at the moment. began is when the try began: it counts towards --wait, so
// that the whole takes no longer than the user said.
func (a *app) waitBehind(
	ctx context.Context, m locker, o *runOptions, held *interlock.HeldError, began time.Time,
) (*interlock.Lease, error) {
	waitCtx, cancel := ctx, context.CancelFunc(func() {})
	if o.waitGiven {
		waitCtx, cancel = context.WithTimeout(ctx, o.wait-time.Since(began))
	}
	defer cancel()
	// The wait may be shorter than one exchange with the engine, which lastKnown needs to know.
	asked := time.Now()
	lease, err := m.Lock(waitCtx)
	if err != nil {
		return nil, a.lastKnown(waitCtx, held, asked, err)
	}
	// Granted in time, so --wait counts no more.
	return a.claimed(ctx, lease, cmp.Or(o.lease, defaultLease))
}

// lastKnown is the error of a wait that ended. If the wait was over before the engine had had --timeout for an answer,
// nothing is wrong with the engine: what it said last counts, which is that the lock is held.
//
// It matters for short waits: with --wait 50ms on a slow network every wait ends before its answer. The exit code would
// then be 69, and a cron job would report a broken engine each time.
func (a *app) lastKnown(ctx context.Context, held *interlock.HeldError, asked time.Time, err error) error {
	if errors.Is(err, interlock.ErrHeld) || !errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		time.Since(asked) >= a.timeout {
		return err
	}
	last := *held
	last.Cause = ctx.Err()
	return &last
}

// claimed has a lease that came by a push, and so is short, renewed: the job's time limits are counted from a full one.
// A lease that has more than three quarters of full left is taken as it is. If the renewal fails, the lock is given
// back, and the error returned.
//
// A pushed grant lasts two seconds on Redis until it is claimed (docs/rationale.md, Pushed grants), and the client
// claims it a few milliseconds later. The job does not start on it: with a grace of five seconds its budget would be
// over before it began. Nine tenths are asked for, because the renewal itself takes time.
func (a *app) claimed(ctx context.Context, lease *interlock.Lease, full time.Duration) (*interlock.Lease, error) {
	if end := lease.Deadline(); end.IsZero() || time.Until(end) > full*3/4 {
		return lease, nil
	}
	asking, done := a.within(ctx)
	defer done()
	err := lease.Extend(asking, full*9/10)
	if err == nil {
		return lease, nil
	}
	// The lease must not stay behind, also when ctx has ended.
	undo, cancel := a.within(context.WithoutCancel(ctx))
	defer cancel()
	return nil, errors.Join(err, lease.Unlock(undo))
}

// tryLock tries for the lock within --timeout. Without it an engine that accepts the connection and never answers would
// hold the command for ever.
func (a *app) tryLock(ctx context.Context, m locker) (*interlock.Lease, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	lease, err := m.TryLock(ctx)
	return lease, explained(ctx, err)
}

// tellWaiting says for whom the wait is: to a person at a terminal, with --verbose, and whenever the wait cannot end
// because the job that started us holds the lock. It reports whether it said anything. A script without a terminal
// hears nothing: cron would mail every wait.
func (a *app) tellWaiting(verbose bool, held *interlock.HeldError) bool {
	// The token is compared too: after the lock was lost, another job holds it under the same name, and that one does
	// end.
	ours := a.getenv("INTERLOCK_NAME") == held.Name && held.Token != 0 &&
		a.getenv("INTERLOCK_TOKEN") == utoa(held.Token)
	if ours {
		a.say("warning: the job that started this command holds %q (INTERLOCK_TOKEN is its token): if it waits for "+
			"us, this never ends", held.Name)
	}
	if !verbose && !ours && !isTerminal(a.stderr) {
		return false
	}
	a.say("waiting: %s", describeHeld(held, time.Now()))
	return true
}

// tellAcquired says with --verbose that the lock was granted.
func (a *app) tellAcquired(o *runOptions, lease *interlock.Lease, began time.Time) {
	if o.verbose {
		a.say("got %q after %s, token %d", lease.Name(), short(time.Since(began)), lease.Token())
	}
}

// lender is what the file engine can do beyond others: it gives a descriptor of the lock for the job to inherit, so
// that the lock lives as long as the job even if this process is killed.
//
// The interface is asked for and not the engine's name, so another engine can have it too; fd.go does the same.
type lender interface {
	File(key driver.Key) (*os.File, error)
}

// lends returns how to get that descriptor, or nil on engines without it.
func (e *engine) lends(key driver.Key) func() (*os.File, error) {
	l, ok := e.driver.(lender)
	if !ok {
		return nil
	}
	return func() (*os.File, error) { return l.File(key) }
}
