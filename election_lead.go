package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Lead keeps the caller in the election until its work is done.

// The pauses between two campaigns that the engine has not answered, or has refused. They double each time.
const leadFirst, leadMost = 100 * time.Millisecond, 5 * time.Second

// Lead campaigns with value, and calls fn while it leads. fn's context is cancelled when ctx is and the moment the
// leadership is lost, with the reason as its cause. After a loss Lead waits until fn has returned, whatever it returns,
// and campaigns again. If a resource checks the term, use [Election.Campaign], whose lease has the token.
//
// Lead returns fn's error when fn returns while it still leads, and then resigns. When ctx ends during a campaign it
// returns ctx's cause. An engine that does not answer, or refuses, is asked again, with pauses of up to 5 s: the log
// says so. Every other error of [Election.Campaign] ends Lead, such as an invalid value. LockOptions.Wait does not.
// When fn panics Lead resigns, and the panic goes on.
func (e *Election) Lead(ctx context.Context, value string, fn func(ctx context.Context) error) error {
	if err := e.mayCampaign(ctx, value); err != nil {
		return err
	}
	if fn == nil {
		return shell.Wrap("lead", e.key, shell.ErrNoFunction)
	}
	candidate := e.candidate(value)
	candidate.Terms.Wait = 0
	for wait := leadFirst; ; {
		term, err := shell.Acquire(ctx, candidate, false)
		switch {
		case err == nil:
			wait = leadFirst
			if over, err := leadTerm(ctx, term, fn); over {
				return err
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrLost):
			return err
		default:
			e.c.Config.Logger.WarnContext(ctx, "interlock: campaign failed, and is repeated", "election", e.key.Name,
				"engine", e.c.Machine.Traits.Engine, "in", wait, "err", err)
			if !pauseOpen(ctx, e.c, wait) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return shell.Wrap("lead", e.key, ErrClosed)
			}
			wait = min(2*wait, leadMost)
		}
	}
}

// leadTerm runs fn for one term, and resigns. It reports whether Lead is over: fn has returned while l still led.
func leadTerm(ctx context.Context, l *core.Hold, fn func(ctx context.Context) error) (over bool, err error) {
	defer func() {
		released := shell.UnlockInTime(ctx, l)
		if over {
			err = shell.Joined(err, released)
		}
	}()
	err = fn(shell.HoldContext(ctx, l))
	return !errors.Is(shell.EndOf(l), ErrLost), err
}

// pauseOpen waits for d and returns true, or false if ctx or the client ended first.
func pauseOpen(ctx context.Context, c *shell.Client, d time.Duration) bool {
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.WaitsCtx, stop)()
	return shell.Pause(bounded, d)
}
