package interlock

import (
	"context"
)

// One call as the Observer sees it: Waiting at most once, and never after the end of the call. acquire_wait.go
// announces; acquire.go ends the call.

// newCall begins a call. It allocates only if the Observer has Waiting.
func (c *Client) newCall() call {
	at := call{start: c.reading()}
	if c.opts.Observer.Waiting != nil {
		at.waiting = new(announcement)
	}
	return at
}

// tell calls Waiting, unless it has been called or the call is over. It may run in any goroutine, beside the end of the
// call.
func (a *announcement) tell(ctx context.Context, c *Client, e Event) {
	a.mu.Lock()
	if a.told != nil || a.over {
		a.mu.Unlock()
		return
	}
	told := make(chan struct{})
	a.told = told
	a.mu.Unlock()
	defer close(told) // also if the user's code ends the goroutine (runtime.Goexit)
	c.tellWaiting(ctx, e)
}

// end ends the call for its announcement, and says in e whether it had to wait.
func (at call) end(e *Event) {
	if e.Queued = at.over(); e.Queued {
		e.Call = CallID{at.waiting}
	}
}

// over ends the call for its announcement, and reports whether Waiting has been called. If Waiting is running, over
// blocks until it has returned: the Observer must hear of the beginning first.
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

// announcement returns a function that tells the Observer that w waits, or nil if nobody listens. The function calls
// the user's code, so it runs without Client.mu.
func (w *waiter) announcement(ctx context.Context) func() {
	if w.waiting == nil {
		return nil
	}
	return func() {
		e := w.lease.m.event(w.lease.owner)
		e.Call = CallID{w.waiting}
		w.waiting.tell(ctx, w.lease.m.client(), e)
	}
}
