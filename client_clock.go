package interlock

import (
	"context"
	"math"
	"time"
)

// instant is a reading of this process's monotonic clock: how long the client had existed. A hold keeps many of them,
// and a time.Time is three times as large, most of it for a wall clock that nothing here may be judged by.
type instant time.Duration

// never comes after every instant.
const never instant = math.MaxInt64

// plus is the instant d later.
func (i instant) plus(d time.Duration) instant {
	if i == never {
		return never
	}
	return i + instant(d)
}

// since is how much later i is than from.
func (i instant) since(from instant) time.Duration { return time.Duration(i - from) }

// at turns what a driver says into an instant.
func (c *Client) at(t time.Time) instant { return instant(t.Sub(c.born)) }

// reading is the present instant. Judgements need [Client.now], which also notices that the machine was asleep.
func (c *Client) reading() instant { return instant(time.Since(c.born)) }

// time turns i into what users understand; never is the zero time. The wall clock's part is counted from the present
// one and not from that of the client's first day: it may have been set since.
func (c *Client) time(i instant) time.Time {
	if i == never {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(i.since(c.at(now)))
}

// pause waits for d and reports true, or false if ctx ended first.
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
