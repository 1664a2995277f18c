package interlock

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// lookOften is the pause between two looks on engines that do not tell of changes: so late a change is seen.
	lookOften = time.Second
	// lookSeldom is the least pause on engines that do, for what they cannot tell: that a lease has ended while nobody waited. Before
	// it can have ended nothing is to be seen, so who watches a leader looks when its lease, as it was last seen, is over.
	lookSeldom = 15 * time.Second
	// lookRarely is the longest: a message can be lost, in spite of all.
	lookRarely = time.Minute
)

// Observe yields who leads, at once and then whenever that changes, and the zero Leader when nobody does, see [Election.Leader]. Of leaders that
// follow each other faster than they can be seen or taken in some may be left out, but never the last: what was yielded
// last is true, or the next is on its way.
//
// Engines that tell of changes (memory, Redis) are watched, and looked at for what they cannot tell, the end of a leader that has
// died while nobody else campaigns: when its lease should be over, so that its end is seen at most fifteen seconds late, and once
// a minute in any case. The others are looked at every second. That is how late a change may be seen, and what it costs: one look at
// a time, see [Client.Look], for each Observe.
//
// The sequence ends with ctx, and after an error that stays: ErrClosed, ErrUnsupported, or a refusal (ErrRefused). While the engine
// cannot be reached it yields the *UnavailableError once and goes on: the leader is unknown until the next pair without an error.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := e.mayBeAsked(ctx); err != nil {
			yield(Leader{}, err)
			return
		}
		bounded := call{user: ctx, base: e.c.asks}
		defer bounded.end()
		o := observation{e: e, changes: e.c.watchFor(&bounded, e.key)}
		defer o.changes.stop()
		for more := true; more; {
			more = o.look(ctx, &bounded, yield) && o.changes.next(&bounded, o.next)
		}
		if e.c.asks.Err() != nil && ctx.Err() == nil && !o.closed {
			yield(Leader{}, wrap("observe", e.key, ErrClosed))
		}
	}
}

// observation is one Observe under way.
type observation struct {
	e       *Election
	changes *changes
	last    Leader
	next    time.Time // before this nothing is to be seen but what the engine tells
	known   bool // last was yielded, and no error since
	blind   bool // the engine could not be reached when it was asked last
	closed  bool // nothing is to be yielded any more
}

// look yields what is new. It reports whether to go on.
func (o *observation) look(ctx, bounded context.Context, yield func(Leader, error) bool) bool {
	l, next, err := o.e.look(bounded)
	o.next = next
	switch {
	case bounded.Err() != nil:
		return false
	case err != nil && !final(err) && o.blind:
		return true
	case err != nil:
		o.known, o.blind = false, true
		o.closed = !yield(Leader{}, err) || final(err)
		return !o.closed && ctx.Err() == nil
	case o.known && l == o.last:
		return true
	}
	o.last, o.known, o.blind = l, true, false
	o.closed = !yield(l, nil)
	return !o.closed
}

// final reports that to ask again would bring the same.
func final(err error) bool { return stays(err) || driver.Refusal(err) != nil }

// stays reports that an error will be the same the next time. A refusal does not count; see final.
func stays(err error) bool {
	return errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded)
}

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
	go func() { // see above
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

// next waits for a hint, or until it is time to look without one: at the given instant, within the bounds of lookSeldom and
// lookRarely. It reports false when ctx has ended.
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

// rarely is when to look again after a look that brought err, at what does not change without the engine's telling of it.
func rarely(err error) time.Time {
	if err != nil {
		return time.Time{}
	}
	return time.Now().Add(lookRarely)
}

// stop ends the watch and waits for its end.
func (w *changes) stop() { w.end() }
