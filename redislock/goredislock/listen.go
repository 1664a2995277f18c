// Who listens where: the feed of the driver's own channel, and in a Cluster feeds for the channels of slots. feed.go is
// one connection; transport.go starts this.

package goredislock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

const (
	// firstPause is the first pause between two attempts to subscribe to the driver's own channel. It doubles up to
	// longestPause.
	firstPause, longestPause = 10 * time.Millisecond, time.Second

	// settled is how long a feed must have lived for the pauses to begin anew. A server that accepts connections and
	// breaks them must not be asked without a pause.
	settled = time.Second
)

// subscribe makes a feed of the driver's own channel and blocks until the server has confirmed it. In a Cluster any
// node will do, because a PUBLISH reaches all of them.
func (c *transport) subscribe(ctx context.Context) (*feed, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	node, err := within(ctx, c, func() (*redis.Client, error) { return c.owner(ctx, "") })
	if err != nil {
		return nil, err
	}
	f := c.newFeed(node, false)
	if !c.spawn(f.run) {
		return nil, driver.ErrClosed
	}
	// Without the subscription the feed is of no use, so it is ended. A caller may try again with a new one.
	if err := f.listen(ctx, c.channel); err != nil {
		f.fail(err)
		return nil, err
	}
	return f, nil
}

// keep makes sure that there is a feed of the driver's own channel, until c.base ends. It is a goroutine of its own.
func (c *transport) keep(f *feed) {
	for failures := 0; ; {
		select {
		case <-f.ended: // its finish has told the handler
		case <-c.base.Done():
			return
		}
		if failures++; time.Since(f.begun) > settled {
			failures = 0
		}
		if f = c.resubscribe(&failures); f == nil {
			return
		}
		c.handler.Resumed(0)
	}
}

// resubscribe tries until there is a feed. It returns nil if c.base has ended.
func (c *transport) resubscribe(failures *int) *feed {
	for {
		if *failures > 0 {
			d := min(firstPause<<min(*failures-1, 10), longestPause)
			if !enginekit.Pause(c.base, d/2+rand.N(d/2)) {
				return nil
			}
		}
		f, err := c.subscribe(c.base)
		if err == nil {
			return f
		}
		if c.base.Err() != nil {
			return nil
		}
		*failures++
		c.outdated() // the node may have lost its place in the Cluster
	}
}

// Listen subscribes at the owner of a slot, and blocks until the server has confirmed that. After an error nothing is
// known of the subscription: it may still come, and the next Listen then finds it.
func (c *transport) Listen(ctx context.Context, _ uint16, channel string) error {
	var t conn.Try
	for ctx.Err() == nil {
		node, err := c.owner(ctx, channel)
		if err != nil {
			return err
		}
		f, err := c.feedOf(node)
		if err == nil {
			err = f.listen(ctx, channel)
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		_, final := t.NextSubscribe(c.judged(node, err), err, c.failsOver())
		if c.base.Err() != nil {
			return &conn.RefusedError{Err: err}
		}
		if final != nil {
			return final
		}
		// After MOVED too: the cluster client looks anew in the background.
		_ = conn.Pause(ctx)
	}
	return ctx.Err()
}

// Unlisten ends a subscription wherever it is: the slot may have moved since.
func (c *transport) Unlisten(_ uint16, channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.feeds {
		f.unlisten(channel)
	}
}

// feedOf returns the feed for the channels of a node's slots, and makes it if there is none.
func (c *transport) feedOf(node *redis.Client) (*feed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.feeds[node]; f != nil {
		return f, nil
	}
	f := c.newFeed(node, true)
	if !c.launch(f.run) {
		return nil, &conn.RefusedError{Err: driver.ErrClosed}
	}
	c.feeds[node] = f
	return f, nil
}

// forget removes a feed that has ended. The feed of the driver's own channel is not in the map.
func (c *transport) forget(f *feed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for node, known := range c.feeds {
		if known == f {
			delete(c.feeds, node)
		}
	}
}
