// Package trust says until when a lease counts without asking anybody. Everything in it is a value, or is judged at an
// instant that the caller gives: it reads a clock in [Clock.Now] only.
//
// A window starts before the request was sent, because the engine's own lease starts somewhere between sending and
// answering. It ends earlier than the engine's lease by an allowance for clocks that run at different rates. All
// instants are on this process's monotonic clock; no clock of another machine is ever compared with it.
// docs/rationale.md, The trust window, has the decision.
package trust

import (
	"math"
	"time"
)

// Instant is a reading of this process's monotonic clock, counted from the birth of its [Clock]. A hold keeps many of
// them. A time.Time is three times as large, and most of it is a wall clock by which nothing here may be judged.
type Instant time.Duration

// Never is later than every instant.
const Never Instant = math.MaxInt64

// Plus returns the instant d later; Never stays Never.
func (i Instant) Plus(d time.Duration) Instant {
	if i == Never {
		return Never
	}
	return i + Instant(d)
}

// Since returns how much later i is than from.
func (i Instant) Since(from Instant) time.Duration { return time.Duration(i - from) }

// Clock counts instants from when it was made.
type Clock struct{ born time.Time }

// NewClock begins to count.
func NewClock() Clock { return Clock{time.Now()} }

// Now returns the present instant.
func (c Clock) Now() Instant { return Instant(time.Since(c.born)) }

// At turns a time that has a monotonic reading into an instant.
func (c Clock) At(t time.Time) Instant { return Instant(t.Sub(c.born)) }

// Time turns i into a time.Time for people; Never is the zero time. Its wall clock is computed from the present one,
// and not from that at which the clock began: it may have been set since.
func (c Clock) Time(i Instant) time.Time {
	if i == Never {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(i.Since(c.At(now)))
}

// Allowance is how much earlier than the engine this process takes a lease to end. It is 1 % for clocks of different
// rates, plus 2 ms for engines that count in milliseconds and for the time that noticing takes. Quartz is a hundred
// times better than 1 %; a badly throttled virtual machine is not. For a lease of 30 s the allowance is 302 ms.
func Allowance(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// LeaseFor returns the lease to ask for so that its window is at least d long: the inverse of [Window.End], rounded up.
func LeaseFor(d time.Duration) time.Duration {
	return d + d/50 + 3*time.Millisecond // more than d / (1 - 1 %) + 2 ms
}

// Window is a lease and the instant from which it may be counted.
type Window struct {
	Sent  Instant // just before the request was sent that brought the lease
	Lease time.Duration
}

// End returns until when the window is trusted, on a machine that was not suspended.
func (w Window) End() Instant { return w.Sent.Plus(w.Lease - Allowance(w.Lease)) }

// EndWith is End on a machine that was suspended: the engine's clock ran on, so each suspension within the window
// brings the end nearer by its length.
func (w Window) EndWith(s *Suspensions) Instant { return w.End().Plus(-s.Since(w.Sent)) }

// Over returns when the engine ends the lease at the latest, by a clock that runs at the engine's rate.
func (w Window) Over() Instant { return w.Sent.Plus(w.Lease) }

// Longer returns the one of the two windows that ends later. A confirmation never shortens a window, because answers
// can overtake each other; see [Window.Shorter].
func (w Window) Longer(other Window) Window {
	if other.Over() > w.Over() {
		return other
	}
	return w
}

// Shorter returns the one that ends sooner. It is what is trusted from the sending of a renewal that may shorten the
// engine's lease: that may take effect although it is never answered.
func (w Window) Shorter(other Window) Window {
	if other.Over() < w.Over() {
		return other
	}
	return w
}
