// Waiting that ends with a context, for the loops of engines that try again.

package enginekit

import (
	"context"
	"time"
)

// Pause blocks for d and reports true, or reports false as soon as ctx ends. If both have happened it may report
// either. If d is not positive it returns at once, and is no test of ctx. It costs one timer, which is stopped when
// Pause returns.
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
