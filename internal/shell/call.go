package shell

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// The contexts of questions to the engine, and calls that are repeated until they are answered (latches, conditions,
// Resize, Adopt). Acquisitions have their own way to repeat: request.go.

var _ context.Context = (*core.CallContext)(nil)

// Asking asks the engine something once, in the caller's goroutine. Close ends that, and then the error is ErrClosed.
func (c *Client) Asking(ctx context.Context, ask func(ctx context.Context) error) error {
	bounded := core.CallContext{User: ctx, Base: c.WaitsCtx}
	defer bounded.End()
	err := ask(&bounded)
	if err != nil && c.WaitsCtx.Err() != nil && ctx.Err() == nil {
		return driver.ErrClosed
	}
	return err
}

// Persist makes a call that may be repeated until the engine has answered, ctx has ended, or the client's lease is
// over. For so long the engine knows a repetition by its id (LatchCall.Horizon, Signal.Horizon). Each attempt takes at
// most SettleAttempt. It blocks meanwhile.
func (c *Client) Persist(ctx context.Context, op string, key driver.Key, ask func(context.Context) error) error {
	if err := c.CheckOpen(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return Wrap(op, key, err)
	}
	end, doubt := time.Now().Add(c.Config.Lease), false
	for wait := settleFirst; ; wait = min(2*wait, SettleMost) {
		attempt := core.CallContext{User: ctx, Base: c.WaitsCtx, Until: time.Now().Add(SettleAttempt)}
		err := ask(&attempt)
		attempt.End()
		switch {
		case err == nil:
			return nil
		// Close has begun.
		case c.WaitsCtx.Err() != nil && ctx.Err() == nil:
			return Wrap(op, key, driver.ErrClosed)
		// The caller's time is over; whether an earlier attempt was carried out may be unknown.
		case ctx.Err() != nil:
			return doubtful(op, key, errors.Join(ctx.Err(), err), doubt)
		// The engine would say the same again.
		case driver.Refusal(err) != nil:
			return doubtful(op, key, err, doubt)
		// So it would here.
		case isPermanent(err) && !errors.Is(err, context.Canceled):
			return finalError(op, key, err, doubt)
		// Later the engine may have forgotten the id, and a repetition would count twice.
		case !time.Now().Before(end):
			return doubtful(op, key, err, doubt)
		}
		doubt = doubt || leavesDoubt(err)
		pausing := core.CallContext{User: ctx, Base: c.WaitsCtx}
		Pause(&pausing, wait) // if it ends early, the next attempt does too and says why
		pausing.End()
	}
}

// finalError returns the error of a call that the engine has refused for good. The refusal of a repetition says nothing
// of an earlier attempt, which may have been carried out or may still arrive. Then the outcome is unknown. A loss is
// final for every attempt.
func finalError(op string, key driver.Key, err error, doubt bool) error {
	if doubt && driver.IsDefinite(err) && !errors.Is(err, driver.ErrClosed) {
		return doubtful(op, key, err, doubt)
	}
	return Wrap(op, key, err)
}

// The client's clock: every judgement is made at an instant of it (package trust).

// Reading returns the present instant. Judgements of a lease need [Client.now], which also notices that the machine was
// suspended.
func (c *Client) Reading() trust.Instant { return c.Env.Clock.Now() }

// Time turns i into a time.Time for users.
func (c *Client) Time(i trust.Instant) time.Time { return c.Env.Clock.Time(i) }

// Pause waits for d and returns true, or false if ctx ended first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	// SettleAttempt bounds one request of settling. settleFirst and SettleMost bound the pauses between two, which
	// double each time.
	SettleAttempt = 2 * time.Second
	settleFirst   = 20 * time.Millisecond
	SettleMost    = time.Second
)

// spread returns a pause, which may be 0, less a random part of up to a quarter.
func spread(pause time.Duration) time.Duration { return pause - rand.N(max(pause/4, 1)) }
