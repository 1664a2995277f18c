package shell

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Hints that something may have changed, for those who watch without holding: Election.Observe (election.go)
// and Latch.Wait (latch.go). A hint says when to look, never what there is.

const (
	// LookOften is the pause between two looks on engines that do not tell of changes: so late a change is seen.
	LookOften = time.Second
	// LookSeldom is the least pause on engines that do, for what they cannot tell: that a lease has ended while nobody
	// waited. There is nothing to see before the lease can have ended. So whoever watches a leader looks when the
	// leader's lease, as last seen, is over.
	LookSeldom = 15 * time.Second
	// LookRarely is the longest pause: a message can be lost in spite of everything.
	LookRarely = time.Minute
)

// Changes are the hints about one key.
type Changes struct {
	hints  chan struct{}      // has one place: a hint that has not been taken counts for all that follow
	failed chan struct{}      // closed by the watching goroutine when no more hints will come
	Stop   context.CancelFunc // ends the watch and waits for its goroutine
}

// WatchFor begins to watch key, if the engine can. The goroutine ends with ctx or with stop, which the caller calls;
// the caller's call waits for it, and Close does not.
func (c *Client) WatchFor(ctx context.Context, key driver.Key) *Changes {
	w := &Changes{hints: make(chan struct{}, 1), failed: make(chan struct{}), Stop: func() {}}
	watcher, can := c.Driver.(driver.Watcher)
	if !can {
		close(w.failed)
		return w
	}
	watching, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	w.Stop = func() { cancel(); <-done }
	go func() { // ends with ctx or stop
		defer close(done)
		defer close(w.failed)
		_ = watcher.Watch(watching, key, w.hint) // after an error we look often
	}()
	return w
}

// hint says that something may have changed. It does not block, because the driver calls it.
func (w *Changes) hint() {
	select {
	case w.hints <- struct{}{}:
	default:
	}
}

// Next waits for a hint, or until the instant at. Without a hint it waits LookSeldom at least and LookRarely at most,
// less a random part of up to a quarter. It returns false when ctx has ended.
func (w *Changes) Next(ctx context.Context, at time.Time) bool {
	wait, failed := min(max(LookSeldom, time.Until(at)), LookRarely), w.failed
	wait = spread(wait) // clients that were told of the same change would all look at once
	select {
	case <-failed:
		wait, failed = LookOften, nil
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.hints:
	case <-timer.C:
	case <-failed: // something may have been missed
	case <-ctx.Done():
		return false
	}
	return true
}

// Rarely returns when to look again, after a look that brought err, at something that changes only when the engine says
// so. That is soon after an error, and else after LookRarely.
func Rarely(err error) time.Time {
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(LookRarely)
}
