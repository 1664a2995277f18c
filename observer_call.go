package interlock

import (
	"context"
	"sync"
)

// call is one Lock, TryLock, Upgrade or the like, as far as all attempts that it takes have in common.
type call struct {
	start   instant
	waiting *announcement // nil if the Observer has no Waiting
}

// newCall begins a call.
func (c *Client) newCall() call {
	at := call{start: c.reading()}
	if c.opts.Observer.Waiting != nil {
		at.waiting = new(announcement)
	}
	return at
}

// announcement tells the Observer that a call has to wait: once, however many attempts the call takes, and never after
// its end. So a gauge of those who wait can count up in Waiting and down in what ends the call.
type announcement struct {
	mu   sync.Mutex    // never held while Waiting runs
	told chan struct{} // closed when Waiting has returned; nil until it is called
	over bool
}

// tell calls Waiting, unless it has been called or the call is over: it may come from another goroutine.
func (a *announcement) tell(ctx context.Context, c *Client, e Event) {
	a.mu.Lock()
	if a.told != nil || a.over {
		a.mu.Unlock()
		return
	}
	told := make(chan struct{})
	a.told = told
	a.mu.Unlock()
	defer close(told) // also if the user's code ends the goroutine
	c.tellWaiting(ctx, e)
}

// end is over, and says so in e.
func (at call) end(e *Event) {
	if e.Queued = at.over(); e.Queued {
		e.Call = CallID{at.waiting}
	}
}

// over ends the call for its announcement, and reports whether Waiting has been called. It waits for that to return.
func (at call) over() bool {
	a := at.waiting
	if a == nil {
		return false
	}
	a.mu.Lock()
	a.over = true
	told := a.told
	a.mu.Unlock()
	if told == nil {
		return false
	}
	<-told
	return true
}

// announcement returns what tells the Observer that w has to wait, or nil if nobody listens.
func (w *waiter) announcement(ctx context.Context) func() {
	if w.waiting == nil {
		return nil
	}
	return func() {
		e := w.lease.m.event(w.lease.owner)
		e.Call = CallID{w.waiting}
		w.waiting.tell(ctx, w.lease.m.c, e)
	}
}
