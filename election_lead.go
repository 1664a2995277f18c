package interlock

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/internal/core"
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
		return wrap("lead", e.key, errNoFunction)
	}
	candidate := e.candidate(value)
	candidate.Terms.Wait = 0
	for wait := leadFirst; ; {
		term, err := acquire(ctx, candidate, false)
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
			e.c.opts.Logger.WarnContext(ctx, "interlock: campaign failed, and is repeated", "election", e.key.Name,
				"engine", e.c.core.Traits.Engine, "in", wait, "err", err)
			if !e.c.pauseOpen(ctx, wait) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return wrap("lead", e.key, ErrClosed)
			}
			wait = min(2*wait, leadMost)
		}
	}
}

// leadTerm runs fn for one term, and resigns. It reports whether Lead is over: fn has returned while l still led.
func leadTerm(ctx context.Context, l *core.Hold, fn func(ctx context.Context) error) (over bool, err error) {
	defer func() {
		released := unlockInTime(ctx, l)
		if over {
			err = joined(err, released)
		}
	}()
	err = fn(holdContext(ctx, l))
	return !errors.Is(endOf(l), ErrLost), err
}

// pauseOpen waits for d and returns true, or false if ctx or the client ended first.
func (c *Client) pauseOpen(ctx context.Context, d time.Duration) bool {
	bounded, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.asks, stop)()
	return pause(bounded, d)
}
