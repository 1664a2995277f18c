package redislock

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Awaiter is a Conn that makes use of the goroutines that wait for a push.
type Awaiter interface {
	Conn

	// Await returns true when there is something in news, which it takes, and false at the instant until. Meanwhile the
	// goroutine may read the connection over which the calls for slot run, so that a push that is for it need not wake
	// another one. So the Handler sends to news without blocking. What others send is seen as well, but perhaps only at
	// until, unless they are Conn.Close or follow a Dropped.
	//
	// The error is that of ctx, or driver.ErrClosed after Close. If the connection breaks the wait goes on without it.
	Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error)
}

var _ Awaiter = (*rueidisConn)(nil)

// Await waits for a push.
func (c *rueidisConn) Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error) {
	if n := c.owner(slot); n != nil {
		if l := n.link.Load(); l != nil && l.wire != nil {
			heard, err := l.wire.await(ctx, news, until)
			if err == nil || ctx.Err() != nil {
				return heard, err
			}
		}
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-news:
		return true, nil
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-c.base.Done():
		return false, driver.ErrClosed
	}
}

// dropped tells the handler that messages may have been lost. Those who wait for them and read meanwhile would not see
// what it sends them.
func (c *rueidisConn) dropped(l Link) {
	c.handler.Dropped(l)
	for _, n := range c.known() {
		if l := n.link.Load(); l != nil && l.wire != nil {
			l.wire.nudge()
		}
	}
}
