package worker

import (
	"context"
	"sync/atomic"
	"time"
)

// bound is the context of one call, and knows when it ended.
//
// A context whose time is over ends when the program gets to its timer, and a machine with more to do than
// processors may leave the timer lying, or the goroutines that it wakes, while others of the same process get on.
// What counts is therefore not the instant at which it was to end but that at which a goroutine ran that was started
// by its end for that alone, and uses nothing of what is tested. (So a library that kept all processors of its
// program busy would not be noticed here.)
type bound struct {
	context.Context                 //nolint:containedctx // it is one
	parent          context.Context //nolint:containedctx // whose end is another thing

	told atomic.Pointer[time.Time]
}

// within bounds a call by d. What it returns must be called when the call is over.
func within(parent context.Context, d time.Duration) (*bound, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parent, d)
	return newBound(ctx, parent, cancel)
}

// endedBy bounds a call by d as well, and has announce called before the context ends, which is when that has returned.
// What it returns must be called when the call is over, and returns when announce is not called any more.
func endedBy(parent context.Context, d time.Duration, announce func()) (*bound, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	done := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(done)
		announce()
		cancel()
	})
	b, end := newBound(ctx, parent, cancel)
	return b, func() {
		if !timer.Stop() {
			<-done
		}
		end()
	}
}

// newBound is the bound that ctx is, whose parent's end is another thing.
func newBound(ctx, parent context.Context, cancel context.CancelFunc) (*bound, context.CancelFunc) {
	b := &bound{Context: ctx, parent: parent}
	stop := context.AfterFunc(ctx, func() {
		now := time.Now()
		b.told.Store(&now)
	})
	return b, func() {
		stop() // first, or cancel would start the goroutine
		cancel()
	}
}

// atOnce is how late a call is that was told before anybody else: 0 says that its context has not ended.
const atOnce = 1

// late is how long ago the context has ended; zero if it has not, or because its parent has.
func (b *bound) late() time.Duration {
	if b.Err() == nil || b.parent.Err() != nil {
		return 0
	}
	if told := b.told.Load(); told != nil {
		return max(time.Since(*told), atOnce)
	}
	return atOnce
}
