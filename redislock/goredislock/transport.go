// The transport: a conn.Conn over the client's pool. call.go and batch.go send, listen.go and the feeds bring pushes.

package goredislock

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

const (
	// startTime bounds one try to subscribe to the driver's own channel.
	startTime = 5 * time.Second

	// closeTime is how long Close waits for goroutines. go-redis cannot be told to stop making a connection.
	closeTime = time.Second
)

// transport is a conn.Conn over a go-redis client. Calls go over the client's pools, and pushes come over connections
// beside them. So its replies have no Link, and each push is confirmed by a round trip.
type transport struct {
	single  *redis.Client        // one server, or the primary of Sentinels; nil for a Cluster
	cluster *redis.ClusterClient // nil otherwise

	// What Start sets; constant afterwards.
	channel string
	handler conn.Handler
	base    context.Context //nolint:containedctx // ended by Close: what runs in the background ends with it
	stop    context.CancelFunc

	tasks sync.WaitGroup // what spawn runs

	mu     sync.Mutex // guards what follows; nothing is waited for under it
	closed bool
	feeds  map[*redis.Client]*feed // for Listen, by the node of a Cluster
}

var (
	_ conn.Conn     = (*transport)(nil)
	_ conn.Failover = (*transport)(nil)
)

// Start checks the server and subscribes. It blocks until then or until ctx ends. After an error the transport can only
// be closed.
func (c *transport) Start(ctx context.Context, channel string, h conn.Handler) error {
	c.channel, c.handler = channel, h
	// WithoutCancel, because ctx bounds the start alone.
	c.base, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := c.check(ctx); err != nil {
		return err
	}
	f, err := c.subscribe(ctx)
	if err != nil {
		return err
	}
	if !c.spawn(func() { c.keep(f) }) { // ends with c.base
		return driver.ErrClosed
	}
	return nil
}

// check asks the server who it is, and says what makes it unfit for locks. A replica is given some time to become the
// primary. In a Cluster nothing is asked: a replica there redirects its callers.
func (c *transport) check(ctx context.Context) error {
	if c.cluster != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	var t conn.Try
	for {
		said, err := (&server{c, c.single}).Do(ctx, "HELLO")
		if _, answered := asAnswer(err); answered && verdict(err) == conn.Unknown {
			return nil // too old to say
		}
		waits := err != nil && c.failsOver()
		if err == nil {
			err = conn.CheckServer(said, false)
			waits = err != nil && verdict(err) != conn.Refused
		}
		if !waits || t.Impatient() || conn.Pause(ctx) != nil {
			return err
		}
	}
}

// FailsOver implements [conn.Failover].
func (c *transport) FailsOver() bool { return c.failsOver() }

// Addrs returns the servers' addresses. A client that asks Sentinels for them does not tell.
func (c *transport) Addrs() []string {
	switch {
	case c.cluster != nil:
		return c.cluster.Options().Addrs
	case c.failsOver():
		return nil
	}
	return []string{c.single.Options().Addr}
}

// Sharded reports whether this is a Cluster.
func (c *transport) Sharded() bool { return c.cluster != nil }

// Close ends the subscriptions and leaves the client open. Calls under way return at once; what they left with the
// client ends with the client's own time limits.
func (c *transport) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.stop == nil {
		return nil // it was never started, so nothing runs
	}
	c.stop()
	// A connection may be under way to a server that hangs.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.base), closeTime)
	defer cancel()
	enginekit.CloseWithin(ctx, func() error { c.tasks.Wait(); return nil })
	return nil
}

// spawn runs f in a goroutine that Close waits for, so f must end soon after c.base has. If c is closed it returns
// false and does not run f.
func (c *transport) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.launch(f)
}

// launch is spawn for a caller that holds the mutex.
func (c *transport) launch(f func()) bool {
	if c.closed {
		return false
	}
	c.tasks.Add(1)
	go func() { // ends with c.base
		defer c.tasks.Done()
		f()
	}()
	return true
}

// owner returns the client of the server that has a key. In a Cluster it is the one that had it when the cluster client
// looked last. An empty key means any server. It does not block once Start has returned.
func (c *transport) owner(ctx context.Context, key string) (*redis.Client, error) {
	if c.cluster == nil {
		return c.single, nil
	}
	node, err := c.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, &conn.RefusedError{Err: err}
	}
	return node, nil
}

// outdated makes the cluster client read anew which node has which slot. It returns at once.
func (c *transport) outdated() {
	if c.cluster != nil {
		c.cluster.ReloadState(c.base)
	}
}

// failsOver reports whether another server may soon take the place of one that cannot be reached.
func (c *transport) failsOver() bool {
	return c.cluster != nil || c.single.Options().Addr == ofSentinels
}

// ofSentinels stands in the place of the address in a client that asks Sentinels for it (redis.NewFailoverClient).
const ofSentinels = "FailoverClient"

// within runs f, and returns when ctx ends or c is closed even if f does not. go-redis looks at the end of a context
// only before it sends, and at its deadline only with ContextTimeoutEnabled. f must not use anything that its caller
// may change afterwards.
func within[T any](ctx context.Context, c *transport, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, &conn.RefusedError{Err: ctx.Err()}
	}
	if c.base.Err() != nil {
		return none, &conn.RefusedError{Err: driver.ErrClosed}
	}
	done := make(chan result, 1) // buffered, so that the goroutine ends even if nobody reads
	go func() {                  // ends with the command, which the client's own time limits end
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-c.base.Done():
		return none, driver.ErrClosed
	}
}
