// The end of a run: after the job, before the exit code. It keeps the lock for --min-hold, gives it back, and finds the
// exit code.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// sitOut waits, on engines where nobody else can keep the lock closed, until --min-hold is over, a signal comes, or the
// lock is lost.
//
// The lock needs no care meanwhile: it lasts as long as this process, or its session. A signal ends the pause, and the
// release follows as always. A loss ends it too: there is nothing left to keep.
func (a *app) sitOut(ctx context.Context, o *runOptions, lease *interlock.Lease, signals *signals, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	// Otherwise a command that has plainly ended would look as if it hung.
	if o.verbose {
		a.say("the command has ended; %q stays held for %s more", lease.Name(), short(left))
	}
	ctx, done := signals.endWait(ctx)
	defer done()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-lease.Lost():
	}
}

// releaseTime is how long the command tries to give the lock back: to the end of its lease, which frees it too, and
// not for longer than the engine may take for an answer. Whoever waits for the exit code of a job should not wait for a
// server that is gone.
//
// The drift is added because the library's deadline lies that much before the end of the lease at the engine.
func (a *app) releaseTime(deadline time.Time, b budget) time.Duration {
	if deadline.IsZero() { // it does not end by itself
		return a.timeout
	}
	return min(a.timeout, max(time.Until(deadline)+b.drift, minReleaseTime))
}

// minReleaseTime is for holds that have ended by our clock already: the engine may not know that yet.
const minReleaseTime = time.Second

// giveBack releases the lock after the job and finds the exit code. What the job did counts for more than what happened
// to a lock that it no longer needs, except when the lock was gone while it ran. The release has a time of its own: ctx
// may have ended with the job.
//
// The exit code is, in this order:
//
//   - that of the error, if the command could not be started;
//   - 125 if somebody of the job could not be killed: whoever starts it again, as after 79, would start it beside them;
//   - 79, or --lost-exit-code, if the lock was lost while the command ran, whatever the command itself returned;
//   - 125 with --strict-release, if the lock could not be given back;
//   - the command's own.
func (a *app) giveBack(
	ctx context.Context, o *runOptions, lease *interlock.Lease, within time.Duration, end jobEnd, failed error,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	// Afterwards it would say that the lock was released, and a loss could not be told from that.
	lost := lease.Err() // as it was before the release
	released := lease.Unlock(ctx)
	if failed != nil {
		return failed
	}
	code := end.code()
	switch {
	case end.unkilled != "":
		return exitWith(exitFailed, unkilledError(end, lost))
	case end.lost && lost == nil: // ended in time, before the loss
		lost = &interlock.LostError{
			Kind: lease.Kind(), Name: lease.Name(), Token: lease.Token(),
			Reason: driver.LostUnconfirmed,
		}
		fallthrough
	case end.lost:
		return exitWith(o.lostExitCode, fmt.Errorf("the command was ended: %w", lost))
	// The command has ended by itself, but the lock was gone before: its last writes may have met another holder.
	case errors.Is(released, interlock.ErrLost) && o.onLost == "kill":
		return exitWith(o.lostExitCode, fmt.Errorf("the command ended with exit code %d, but %w", code, released))
	// Off by default: the lock ends by itself, and cron would mail the failure of a job that has done its work.
	case released != nil && o.strict:
		return exitWith(exitFailed, fmt.Errorf("the command ended with exit code %d, but the lock could not be given "+
			"back: %w", code, released))
	// The job's exit code stands, and its next run may have to wait for the rest of the lease.
	case released != nil:
		a.say("warning: the lock could not be given back: %s", message(released))
	}
	return silently(code)
}

// unkilledError says who works on, and whether the lock is gone meanwhile. It matches no loss: what a program does
// after one, it should not do beside them.
func unkilledError(end jobEnd, lost error) error {
	switch {
	case lost != nil:
		return fmt.Errorf("%s, without the lock: %s", end.unkilled, message(lost))
	case end.lost:
		return fmt.Errorf("%s, and the lock could not be renewed", end.unkilled)
	}
	return fmt.Errorf("%s; the command itself ended with exit code %d", end.unkilled, end.code())
}
