package shell

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/internal/trust"
)

// The client's clock: every judgement is made at an instant of it (package trust).

// reading returns the present instant. Judgements of a lease need [Client.now], which also notices that the machine was
// suspended.
func (c *Client) Reading() trust.Instant { return c.Machine.Env.Clock.Now() }

// time turns i into a time.Time for users.
func (c *Client) Time(i trust.Instant) time.Time { return c.Machine.Env.Clock.Time(i) }

// pause waits for d and returns true, or false if ctx ended first.
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
