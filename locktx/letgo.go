package locktx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
)

// The end of the locks: released, or left to run out. end.go decides which.

const (
	// grace is how long Commit and Rollback go on waiting after their context has ended. They wait for the database and
	// then for the engine; all of it is over 50 ms after the end.
	grace = 40 * time.Millisecond

	// patience is how long a ROLLBACK and the release of locks are waited for if the context never ends, and a COMMIT
	// at least.
	patience = 5 * time.Second

	// unleased is how long a COMMIT is waited for under a lock that ends only with its process: the default lease.
	unleased = 30 * time.Second
)

// graceful returns a context that ends grace after ctx.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return bounded, func() {
		forget()
		cancel()
	}
}

// whyEnded returns an error that matches both ctx's error and its cause, or nil if ctx has not ended.
func whyEnded(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// letGo unlocks leases, or leaves them to run out. It waits for the engine's confirmation until bounded ends, and for
// at most patience. That none has come is no error: the release goes on in the background.
func letGo(bounded context.Context, leases []*interlock.Lease, leave bool) error {
	said := make(chan error, len(leases))
	limit, cancel := context.WithTimeout(bounded, patience)
	defer cancel()
	var all error
	for _, l := range leases {
		if leave {
			all = errors.Join(all, l.Abandon())
			said <- nil
			continue
		}
		go func() { said <- l.Unlock(limit) }() // ends soon after limit
	}
	for range leases {
		select {
		case err := <-said:
			if !errors.Is(err, interlock.ErrUnavailable) {
				all = errors.Join(all, err)
			}
		case <-limit.Done():
			return all
		}
	}
	return all
}
