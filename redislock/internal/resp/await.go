package resp

import (
	"context"
	"time"
)

// Await returns when there is something in news, which it takes, or at the given instant: then it reports false.
// Meanwhile it may read for the Conn, so that a push arrives in the goroutine that waits for it. What takes the pushes
// sends to news is seen at once; what others send may be seen late, unless they call Nudge after that.
func (c *Conn) Await(ctx context.Context, news <-chan struct{}, until time.Time) (bool, error) {
	x, _ := c.waiters.Get().(*waiter)
	if x == nil {
		x = &waiter{wake: make(chan struct{}, 1)}
	}
	a := awaiting{c: c, x: x, news: news, until: until}
	defer a.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.handOn()
	for {
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
		case a.long && a.arm(ctx): // mu was unlocked
		default:
			c.read(x, until, !a.long)
			c.handOnWriting() // an answer may be what others have waited for to send more
			a.long = c.stale
		}
	}
}

// awaiting is a call of await.
type awaiting struct {
	c      *Conn
	x      *waiter
	news   <-chan struct{}
	until  time.Time
	long   bool // it has lasted for a tick
	disarm func() bool
	timer  *time.Timer
}

// arm has the end of ctx interrupt a, who does not look at it at every tick any more. It reports false if it was done
// before. It is called under mu, and unlocks it meanwhile.
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

// park waits while somebody else reads. It reports whether there was something in news. It is called under mu, and
// unlocks it meanwhile.
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
	case <-a.x.wake: // the role of the reader is free, or the connection has broken
	case <-a.timer.C: // it fires once: a.until has come
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.awaiters.remove(a.x)
	return heard
}

// end is called at the end, without mu.
func (a *awaiting) end() {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.disarm == nil || a.disarm() { // else the interruption may come yet, and must not be somebody else's
		a.c.waiters.Put(a.x)
	}
}

// Nudge makes who reads in await look into its news.
func (c *Conn) Nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader != nil {
		c.interruptReader()
	}
}
