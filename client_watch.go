package interlock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// lookOften is the pause between two looks on engines that do not tell of changes: so late a change is seen.
	lookOften = time.Second
	// lookSeldom is the pause on engines that do, for what they cannot tell: a message that was lost, a lease that has
	// ended while nobody waited.
	lookSeldom = 15 * time.Second
)

// changes are the hints that something may have changed.
type changes struct {
	hints  chan struct{} // has one place; a hint that is not taken in yet counts for all that follow
	failed chan struct{} // closed when no more hints will come
	end    context.CancelFunc
}

// watchFor begins to watch key, if the engine can. The goroutine ends with ctx or stop.
func (c *Client) watchFor(ctx context.Context, key driver.Key) *changes {
	w := &changes{hints: make(chan struct{}, 1), failed: make(chan struct{}), end: func() {}}
	watcher, can := c.d.(driver.Watcher)
	if !can {
		close(w.failed)
		return w
	}
	watching, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	w.end = func() { cancel(); <-done }
	go func() { // ends with ctx or stop
		defer close(done)
		defer close(w.failed)
		_ = watcher.Watch(watching, key, w.hint) // then we look often
	}()
	return w
}

// hint says that something may have changed. It does not block.
func (w *changes) hint() {
	select {
	case w.hints <- struct{}{}:
	default:
	}
}

// next waits for a hint, or until it is time to look without one. It reports false when ctx has ended.
func (w *changes) next(ctx context.Context) bool {
	wait, failed := lookSeldom, w.failed
	select {
	case <-failed:
		wait, failed = lookOften, nil
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

// stop ends the watch and waits for its end.
func (w *changes) stop() { w.end() }
