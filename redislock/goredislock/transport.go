package goredislock

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

const (
	// startTime bounds one try to subscribe to the driver's own channel.
	startTime = 5 * time.Second

	// closeTime is how long Close waits for goroutines. go-redis cannot be told to give up a connection that it makes.
	closeTime = time.Second
)

// transport is a conn.Conn over a go-redis client. Calls go over the client's pools, pushes over connections beside
// them.
type transport struct {
	single  *redis.Client        // of one server, or of Sentinels
	cluster *redis.ClusterClient // otherwise

	// What Start sets.
	channel string
	handler conn.Handler
	base    context.Context //nolint:containedctx // ended by Close: what runs in the background ends with it
	stop    context.CancelFunc

	tasks sync.WaitGroup // what spawn runs

	mu     sync.Mutex // guards what follows; nothing is waited for under it
	closed bool
	feeds  map[*redis.Client]*feed // of a Cluster's nodes, for Listen
}

var (
	_ conn.Conn     = (*transport)(nil)
	_ conn.Failover = (*transport)(nil)
)

// Start subscribes. After an error the conn can only be closed.
func (c *transport) Start(ctx context.Context, channel string, h conn.Handler) error {
	c.channel, c.handler = channel, h
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

// check asks the server who it is, and says what is wrong with it. A replica is given some time to become the primary.
// In a Cluster it sends its callers on.
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

// FailsOver is failsOver.
func (c *transport) FailsOver() bool { return c.failsOver() }

// Addrs are the servers' addresses. A client that asks Sentinels for them does not tell.
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

// Close ends the subscriptions and leaves the client open. Calls that are under way return at once; what they left with
// the client ends with the client's own time limits.
func (c *transport) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
	ended := make(chan struct{})
	go func() { // ends with the tasks
		c.tasks.Wait()
		close(ended)
	}()
	limit := time.NewTimer(closeTime)
	defer limit.Stop()
	select {
	case <-ended:
	case <-limit.C: // a server hangs while a connection to it is made
	}
	return nil
}

// spawn runs f in a goroutine that Close waits for, so f must end soon after c.base has. It reports false, and does not
// run it, if c is closed.
func (c *transport) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.launch(f)
}

// launch is spawn under the mutex.
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

// owner returns the client of the server that has a key. Of a Cluster it is the one that had it when the cluster client
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

// outdated has the cluster client look anew who has which slot. It returns at once.
func (c *transport) outdated() {
	if c.cluster != nil {
		c.cluster.ReloadState(c.base)
	}
}

// failsOver reports whether another server may soon answer in the place of one that cannot be reached.
func (c *transport) failsOver() bool {
	return c.cluster != nil || c.single.Options().Addr == ofSentinels
}

// ofSentinels is what stands in the place of the address in a client that asks Sentinels for it.
const ofSentinels = "FailoverClient"

// within runs f, and returns when ctx ends or c is closed although f does not: go-redis looks at the end of a context
// only before it sends, and at its deadline only with ContextTimeoutEnabled. f must not use what its caller may change.
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
	done := make(chan result, 1) // buffered, so that nobody need wait for it
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
