package run

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/worker"
)

// missingPermits says what is missing if, when everybody has left, not all permits of the semaphore can be had at once.
func missingPermits(ctx context.Context, locks *interlock.Client, patience time.Duration) []string {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := locks.Semaphore(worker.Semaphore, worker.Permits, nil).Acquire(wait, worker.Permits)
	if err == nil {
		err = all.Unlock(wait)
	}
	if err != nil {
		return []string{fmt.Sprintf("%s: not all %d of them are there at the end: %v", worker.Semaphore, worker.Permits, err)}
	}
	return nil
}
