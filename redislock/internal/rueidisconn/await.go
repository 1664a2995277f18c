// Waiting for a push, and what must be seen although nobody waits. resp/await.go does the reading; entry.go of
// redislock calls.

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

// Await waits for news, and reads the link of the slot meanwhile if that is a connection of package resp. If the link
// breaks, it goes on without it: a Dropped is news for the waiting attempt anyway.
func (c *Conn) Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error) {
	if n := c.owner(slot); n != nil {
		if l := n.link.Load(); l != nil && l.resp != nil {
			heard, err := l.resp.Await(ctx, news, until)
			// An error of the link is not the waiting attempt's: the timer and the news go on below without it.
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

// Attend makes the links see at once what is pushed. Connections of rueidis always do, because a goroutine of its own
// reads them.
func (c *Conn) Attend(on bool) {
	// Stored before the links are looked for: one that is being made looks at it when it is ready (see keep).
	c.attends.Store(on)
	if c.only != nil {
		c.only.attend(on)
		return
	}
	for _, n := range c.known() {
		n.attend(on)
	}
}

// attend passes that on to the link of n, if it has one that needs it.
func (n *node) attend(on bool) {
	if l := n.link.Load(); l != nil && l.resp != nil {
		l.resp.Attend(on)
	}
}

// dropped tells the handler that messages may have been lost with a link.
func (c *Conn) dropped(l conn.Link) { c.told(c.handler.Dropped, l) }

// resumed tells the handler that what was lost with a link can be asked for.
func (c *Conn) resumed(l conn.Link) { c.told(c.handler.Resumed, l) }

// told tells the handler. Goroutines that read in Await do not see what the handler sends to their news, because it
// does not come from their connection; so they are nudged.
func (c *Conn) told(tell func(conn.Link), l conn.Link) {
	tell(l)
	for _, n := range c.known() {
		if l := n.link.Load(); l != nil && l.resp != nil {
			l.resp.Nudge()
		}
	}
}
