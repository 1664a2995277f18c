package interlock

import (
	"context"
	"math"
	"time"
)

// Instants of this process's monotonic clock, which everything in this package is judged by.

// instant is a reading of this process's monotonic clock: how long the client had existed. A hold keeps many of
// them. A time.Time is three times as large, and most of it is a wall clock by which nothing here may be judged.
type instant time.Duration

// never is later than every instant.
const never instant = math.MaxInt64

// plus returns the instant d later; never stays never.
func (i instant) plus(d time.Duration) instant {
	if i == never {
		return never
	}
	return i + instant(d)
}

// since returns how much later i is than from.
func (i instant) since(from instant) time.Duration { return time.Duration(i - from) }

// at turns a time from a driver, which has a monotonic reading, into an instant.
func (c *Client) at(t time.Time) instant { return instant(t.Sub(c.born)) }

// reading returns the present instant. Judgements of a lease need [Client.now], which also notices that the machine was
// suspended.
func (c *Client) reading() instant { return instant(time.Since(c.born)) }

// time turns i into a time.Time for users; never is the zero time. Its wall clock is computed from the present one, and
// not from that at which the client began: the clock may have been set since.
func (c *Client) time(i instant) time.Time {
	if i == never {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(i.since(c.at(now)))
}

// pause waits for d and returns true, or false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
