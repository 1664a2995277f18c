package interlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// lookOften is the pause between two looks on engines that do not tell of changes: so late a change is seen.
	lookOften = time.Second
	// lookSeldom is the least pause on engines that do, for what they cannot tell: that a lease has ended while nobody
	// waited. Before it can have ended nothing is to be seen, so who watches a leader looks when its lease, as it was
	// last seen, is over.
	lookSeldom = 15 * time.Second
	// lookRarely is the longest: a message can be lost, in spite of all.
	lookRarely = time.Minute
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

// next waits for a hint, or until it is time to look without one: at the given instant, within the bounds of lookSeldom
// and lookRarely. It reports false when ctx has ended.
func (w *changes) next(ctx context.Context, at time.Time) bool {
	wait, failed := min(max(lookSeldom, time.Until(at)), lookRarely), w.failed
	wait -= rand.N(wait / 4) // who was told of the same change would look at the same moment
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

// rarely is when to look again after a look that brought err, at what does not change without the engine's telling.
func rarely(err error) time.Time {
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(lookRarely)
}

// stop ends the watch and waits for its end.
func (w *changes) stop() { w.end() }
