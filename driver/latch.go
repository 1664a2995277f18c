package driver

import (
	"context"
	"time"
)

// Latcher is implemented by engines that keep latches, which their Traits say by KindLatch. A latch is a count that
// goes down to zero, once for each time that it is set. Waits for zero use a [Watcher], or ask again.
//
// A latch belongs to nobody: it stays when the client that has set it is gone, until its count is zero. A latch that
// was never set, and one that was forgotten after it had reached zero, are the same: their count is zero.
type Latcher interface {
	// SetLatch sets the count of a latch whose count is zero, and reports whether it did. A latch that counts is left
	// alone.
	SetLatch(ctx context.Context, c *LatchCall) (set bool, err error)

	// CountDown takes one from the count and returns what is left. At zero it does nothing and returns 0.
	CountDown(ctx context.Context, c *LatchCall) (left int64, err error)

	// LatchCount returns the count.
	LatchCount(ctx context.Context, key Key) (int64, error)
}

// LatchCall is one change of a latch. The engine remembers what a call with some ID has done and answered, for Horizon
// after the call or its last repetition, as long as a copy may be under way. The same ID asked
// again gets the same answer and does nothing. So after an error that leaves the outcome open the caller asks again
// with the same ID.
type LatchCall struct {
	Key
	ID      string        // of this change, never used again
	Count   int64         // of SetLatch, at least 1
	Horizon time.Duration // how long the ID is remembered
}
