// Waiting for a push, with the goroutine as the reader of the connection. rueidisconn's await.go calls it; read.go
// reads.

package resp

import (
	"context"
	"time"
)

// Await returns true when there is something in news, which it takes, and false at the instant until. Meanwhile it may
// read for the Conn, so that a push arrives in the goroutine that waits for it. What the function pushed sends to news
// is seen at once. What others send may be seen late, unless they call Nudge afterwards. The error is ctx's, or that of
// the connection.
func (c *Conn) Await(ctx context.Context, news <-chan struct{}, until time.Time) (bool, error) {
	x, _ := c.waiters.Get().(*waiter)
	if x == nil {
		x = &waiter{wake: make(chan struct{}, 1)}
	}
	a := awaiting{c: c, x: x, news: news, until: until}
	defer a.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	// With the lock still held, before end: whoever is left must find a reader.
	defer c.handOn()
	for {
		// The push may have come while this goroutine read for others.
		select {
		case <-news:
			return true, nil
		default:
		}
		switch {
		case c.err != nil:
			return false, c.err
		case ctx.Err() != nil:
			return false, ctx.Err()
		case !time.Now().Before(until):
			return false, nil
		case c.reader != nil:
			if a.park(ctx) {
				return true, nil
			}
		case a.long && a.arm(ctx): // mu was unlocked, so look at everything again
		default:
			// Until arm, a read ends at each tick, so that the end of ctx is seen. To arm costs more than most waits
			// last.
			c.read(x, until, !a.long)
			c.handOnWriting() // an answer may be what others waited for to send more
			a.long = c.stale
		}
	}
}

// awaiting is one call of Await. Only its goroutine uses it.
type awaiting struct {
	c      *Conn
	x      *waiter
	news   <-chan struct{}
	until  time.Time
	long   bool        // it has lasted for a tick: arm pays from now on
	disarm func() bool // of context.AfterFunc; nil until armed
	timer  *time.Timer // made when it parks first
}

// arm makes the end of ctx interrupt a's read, so that a need not look at ctx at every tick any more. It reports false
// if that was done before or ctx cannot end. The caller holds mu, which is unlocked meanwhile: AfterFunc may run the
// function at once, and that locks mu.
func (a *awaiting) arm(ctx context.Context) bool {
	if a.disarm != nil || ctx.Done() == nil {
		return false
	}
	a.c.mu.Unlock()
	c, x := a.c, a.x
	a.disarm = context.AfterFunc(ctx, func() { c.interrupt(x) })
	a.c.mu.Lock()
	return true
}

// park waits while another goroutine reads. It reports whether there was something in news. The caller holds mu, which
// is unlocked meanwhile.
func (a *awaiting) park(ctx context.Context) (heard bool) {
	c := a.c
	c.awaiters.add(a.x)
	c.mu.Unlock()
	if a.timer == nil {
		a.timer = time.NewTimer(time.Until(a.until))
	}
	select {
	case <-a.news:
		heard = true
	case <-a.x.wake: // the reader's role is free, or the connection has broken
	case <-a.timer.C: // it fires once; Await then sees that until has come
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.awaiters.remove(a.x)
	return heard
}

// end gives the waiter back. The caller does not hold mu. If disarm comes too late, interrupt may still use the waiter,
// which must then not become another goroutine's; so it is dropped.
func (a *awaiting) end() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.disarm == nil || a.disarm() { // else the interruption may come yet, and must not be somebody else's
		a.c.waiters.Put(a.x)
	}
}

// Nudge makes the goroutine that reads in Await look into its news.
func (c *Conn) Nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader != nil {
		c.interruptReader()
	}
}
