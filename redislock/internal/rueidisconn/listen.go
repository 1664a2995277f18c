// Subscriptions to the channels of slots (SSUBSCRIBE), in a Cluster. redislock's notices.go asks; link.go sends; the
// server's word comes back in subscribed.

package rueidisconn

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// subscription is one channel that Listen asked a link for. The link's mutex subscribing guards it; err is read after
// changed is closed.
type subscription struct {
	state    subscriptionState
	unwanted bool          // while it begins: Unlisten has come meanwhile
	err      error         // why it could not begin; set before changed is closed
	changed  chan struct{} // closed when the state in which it was made has ended
}

// subscriptionState is where a subscription is in its life. A channel without an entry is not subscribed to.
type subscriptionState int

const (
	beginning subscriptionState = iota // SSUBSCRIBE is under way
	listening
	ending // SUNSUBSCRIBE is under way
)

// Listen subscribes over the link of a slot, and blocks until the server has confirmed that. After an error nothing is
// known of the subscription: it may still come, and the next Listen then finds it.
func (c *Conn) Listen(ctx context.Context, slot uint16, channel string) error {
	var t conn.Try
	for {
		// Looked up in each turn, because the slot may have moved to another node.
		l, err := c.link(ctx, slot, "")
		if err != nil {
			return err
		}
		if err = l.listen(ctx, channel); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait, final := t.NextSubscribe(l.node.judged(l, slot, err), err, c.failsOver())
		if final != nil {
			return final
		}
		if wait && conn.Pause(ctx) != nil {
			return ctx.Err()
		}
	}
}

// Unlisten ends the subscription, on whatever link it is: the slot may have moved since.
func (c *Conn) Unlisten(_ uint16, channel string) {
	for _, n := range c.known() {
		if l := n.link.Load(); l != nil {
			l.unlisten(channel)
		}
	}
}

// listen returns when the server has confirmed the subscription. It loops, because a subscription that it waited for
// may have been ending.
func (l *link) listen(ctx context.Context, channel string) error {
	for {
		s, err := l.subscription(channel)
		if s == nil {
			return err
		}
		select {
		case <-s.changed:
			if s.err != nil {
				return s.err
			}
		// Nothing was sent over a link that has broken, so the caller may subscribe over the next one.
		case <-l.failed:
			return conn.ErrUnsent
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// subscription returns nil, without an error, if the channel is subscribed to. Otherwise it returns a subscription
// whose change must be awaited. It subscribes if nothing is under way.
func (l *link) subscription(channel string) (*subscription, error) {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	s := l.subscriptions[channel]
	switch {
	case s == nil:
		s = &subscription{state: beginning, changed: make(chan struct{})}
		// In a goroutine, because the server's answer must be seen even if nobody waits for it any more.
		if !l.node.conn.spawn(func() { l.begin(channel, s) }) { // ends with the link
			return nil, &conn.RefusedError{Err: driver.ErrClosed}
		}
		l.subscriptions[channel] = s
	case s.state == listening:
		return nil, nil //nolint:nilnil // as the comment says
	case s.state == beginning:
		s.unwanted = false
	}
	return s, nil
}

// begin subscribes, in a goroutine that ends with the link.
func (l *link) begin(channel string, s *subscription) {
	err := l.subscribe("ssubscribe", channel)
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	s.err = err
	close(s.changed)
	switch {
	case err != nil:
		l.remove(channel, s)
	case l.subscriptions[channel] != s: // it has ended at the same moment
	case s.unwanted: // nobody wants it any more
		l.end(channel)
	}
}

// unlisten ends the subscription, if there is one. While it begins it is only marked: an SUNSUBSCRIBE now could
// overtake.
func (l *link) unlisten(channel string) {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	switch s := l.subscriptions[channel]; {
	case s == nil, s.state == ending:
	case s.state == beginning:
		s.unwanted = true
	default:
		l.end(channel)
	}
}

// end unsubscribes. The caller holds the mutex. A Listen that comes now waits, or its SSUBSCRIBE could overtake the
// SUNSUBSCRIBE.
func (l *link) end(channel string) {
	s := &subscription{state: ending, changed: make(chan struct{})}
	l.subscriptions[channel] = s
	if !l.node.conn.spawn(func() { // ends with the link
		_ = l.subscribe("sunsubscribe", channel) // fails only with the link
		l.subscribing.Lock()
		defer l.subscribing.Unlock()
		l.remove(channel, s)
		close(s.changed)
	}) {
		close(s.changed)
	}
}

// remove forgets s, unless something else has taken its place. The caller holds the mutex.
func (l *link) remove(channel string, s *subscription) {
	if l.subscriptions[channel] == s {
		delete(l.subscriptions, channel)
	}
}

// subscribed records the server's word that a subscription has begun or ended, in the goroutine that reads the
// connection. So it is known before any push that follows.
func (l *link) subscribed(kind, channel string) {
	switch kind {
	case "ssubscribe":
		l.subscribing.Lock()
		defer l.subscribing.Unlock()
		// A confirmation for a subscription that nobody waits for any more changes nothing.
		if known := l.subscriptions[channel]; known != nil && known.state == beginning {
			known.state = listening
		}
	case "sunsubscribe":
		// The server ends a subscription by itself when the slot moves away. Then pushes were missed.
		if l.lostSubscription(channel) {
			l.resumed()
		}
	}
}

// lostSubscription forgets a subscription that ended without being asked to: its slot has moved. It reports whether
// there was one.
func (l *link) lostSubscription(channel string) bool {
	l.subscribing.Lock()
	defer l.subscribing.Unlock()
	s := l.subscriptions[channel]
	if s == nil || s.state != listening {
		return false
	}
	delete(l.subscriptions, channel)
	return true
}

// resumed tells the handler that messages may have been lost, although the link goes on. The link's number stays valid,
// so 0 is told.
func (l *link) resumed() {
	l.order.Lock()
	defer l.order.Unlock()
	if !l.silent {
		l.node.conn.resumed(0)
	}
}
