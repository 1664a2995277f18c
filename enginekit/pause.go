package enginekit

import (
	"context"
	"time"
)

// Pause waits for d and reports true, or reports false as soon as ctx ends. If both have happened it may report either.
// Without a positive d it waits for nothing, but is no test of ctx. It costs one timer, which is stopped when Pause
// returns.
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
