package shell

import (
	"context"

	"github.com/interlock-go/interlock/internal/core"
)

// One call as the Observer sees it: Waiting at most once, and never after the end of the call. acquire_wait.go
// announces; acquire.go ends the call.

// newCall begins a call. It allocates only if the Observer has Waiting.
func (c *Client) NewCall() core.Call {
	at := core.Call{Start: c.Reading()}
	if c.Config.Observer.Waiting != nil {
		at.Waiting = new(core.Announcement)
	}
	return at
}

// tellWaiting calls Waiting, unless it has been called or the call is over. It may run in any goroutine, beside the end of the
// call.
func tellWaiting(ctx context.Context, a *core.Announcement, c *Client, e Facts) {
	a.Mu.Lock()
	if a.Told != nil || a.Over {
		a.Mu.Unlock()
		return
	}
	told := make(chan struct{})
	a.Told = told
	a.Mu.Unlock()
	defer close(told) // also if the user's code ends the goroutine (runtime.Goexit)
	c.tellWaiting(ctx, e)
}

// endCall ends the call for its announcement, and says in e whether it had to wait.
func EndCall(at core.Call, e *Facts) {
	if e.Queued = CallOver(at); e.Queued {
		e.Call = at.Waiting
	}
}

// callOver ends the call for its announcement, and reports whether Waiting has been called. If Waiting is running, over
// blocks until it has returned: the Observer must hear of the beginning first.
func CallOver(at core.Call) bool {
	a := at.Waiting
	if a == nil {
		return false
	}
	a.Mu.Lock()
	a.Over = true
	told := a.Told
	a.Mu.Unlock()
	if told == nil {
		return false
	}
	<-told
	return true
}

// announcementOf returns a function that tells the Observer that w waits, or nil if nobody listens. The function calls
// the user's code, so it runs without Machine.Mu.
func AnnouncementOf(ctx context.Context, w *core.Waiter) func() {
	if w.Waiting == nil {
		return nil
	}
	return func() {
		e := factsOf(w.Hold.Lock, w.Hold.Owner)
		e.Call = w.Waiting
		tellWaiting(ctx, w.Waiting, ClientOfLock(w.Hold.Lock), e)
	}
}
