package rueidisconn

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

var (
	_ conn.Awaiter   = (*Conn)(nil)
	_ conn.Attentive = (*Conn)(nil)
)

// Await waits for a push.
func (c *Conn) Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error) {
	if n := c.owner(slot); n != nil {
		if l := n.link.Load(); l != nil && l.resp != nil {
			heard, err := l.resp.Await(ctx, news, until)
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

// Attend has the links see what is pushed at once. Connections of rueidis always do.
func (c *Conn) Attend(on bool) {
	c.attends.Store(on) // before the links are looked for: one that is made just now looks itself
	if c.only != nil {
		c.only.attend(on)
		return
	}
	for _, n := range c.known() {
		n.attend(on)
	}
}

func (n *node) attend(on bool) {
	if l := n.link.Load(); l != nil && l.resp != nil {
		l.resp.Attend(on)
	}
}

// dropped tells the handler that messages may have been lost. Those who wait for them and read meanwhile would not see
// what it sends them.
func (c *Conn) dropped(l conn.Link) {
	c.handler.Dropped(l)
	for _, n := range c.known() {
		if l := n.link.Load(); l != nil && l.resp != nil {
			l.resp.Nudge()
		}
	}
}
