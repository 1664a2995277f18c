// One server: its connection, its driver and how much it is trusted to answer. driver.go starts it; claim.go and
// release.go ask through it.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock"
)

// reconnect is the pause between two attempts to reach a node for the first time. Once it was reached, its Conn
// reconnects by itself.
const reconnect = 250 * time.Millisecond

// node is one of the servers.
type node struct {
	dialer
	opts  *Options
	sets  *sets
	index int           // its own, in the driver and in sets
	again func()        // is called when it has a new connection in place of one that broke
	tried chan struct{} // closed when the first attempt to connect is over
	late  atomic.Bool   // it let somebody wait in vain and has not answered since
	busy  atomic.Int64  // how many requests and releases are under way at it

	mu    sync.Mutex        // guards what follows
	d     *redislock.Driver // nil until it was connected once; then constant
	guard *guard
	err   error // why there is no driver: the error of the latest attempt
}

// newNode returns a node that is not connected. connect does that.
func newNode(dial dialer, opts *Options, sets *sets, index int, again func()) *node {
	return &node{
		dialer: dial, opts: opts, sets: sets, index: index, again: again,
		tried: make(chan struct{}), err: errors.New("not connected yet"),
	}
}

// connect tries until the node has a driver, or ctx ends. It is a goroutine of the Driver.
func (n *node) connect(ctx context.Context) {
	first := sync.OnceFunc(func() { close(n.tried) })
	defer first()
	for ctx.Err() == nil {
		if n.connectOnce(ctx) {
			return
		}
		first()
		enginekit.Pause(ctx, reconnect+rand.N(reconnect))
	}
}

// connectOnce tries once. A node that does not vote counts as connected: it is needed for releases.
func (n *node) connectOnce(ctx context.Context) bool {
	conn, err := n.dial(ctx)
	var d *redislock.Driver
	var g *guard
	if err == nil {
		g = newGuard(conn, n.opts, n.sets, n.index)
		d, err = redislock.StartConn(ctx, g.conn(), n.opts.node())
	}
	if err == nil {
		if err = g.look(ctx); err != nil && !abstains(err) {
			_ = d.Close()
		} else {
			err = nil
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && ctx.Err() != nil { // nothing else would close it
		_ = d.Close()
		return false
	}
	if err != nil {
		if n.err.Error() != err.Error() {
			n.opts.Logger.WarnContext(ctx, "redlock: a node cannot be used", "node", n.name, "error", err)
		}
		n.err = err
		return false
	}
	n.d, n.guard = d, g
	d.OnReconnect(n.again) // for as long as d lives
	return true
}

// driver returns the driver of the node, or nil if it was never connected.
func (n *node) driver() *redislock.Driver {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.d
}

// failure says why there is no driver.
func (n *node) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Errorf("%s: %w: %w", n.name, errAway, n.err)
}

// close closes the node's driver, if there is one. It returns the error of the connection.
func (n *node) close() error {
	if d := n.driver(); d != nil {
		return d.Close()
	}
	return nil
}

// call runs f with the node's driver. Any answer shows that the node lives, so it ends being late.
func (n *node) call(f func(d *redislock.Driver) error) error {
	d := n.driver()
	if d == nil {
		return n.failure()
	}
	err := f(d)
	if said := driver.Refusal(err); said != nil {
		n.late.Store(false)
		// Not as driver.RefusedError: one node's refusal is not yet the lock's.
		return &nodeRefusal{node: n.name, text: said.Error(), hint: said.Hint, open: said.Open}
	}
	if err == nil || driver.IsDefinite(err) || errors.Is(err, driver.ErrLost) {
		n.late.Store(false)
	}
	return err
}

// nodeRefusal is the refusal of one node. It does not match driver.ErrRefused, which would speak for the lock;
// unreachable makes that of it when a majority has refused.
type nodeRefusal struct { //nolint:errname // it is no error of its own, but a node's part of one
	node, text, hint string
	open             bool
}

func (e *nodeRefusal) Error() string { return e.text }

// Is matches driver.ErrUnavailable: the node has no vote for us.
func (e *nodeRefusal) Is(t error) bool { return t == driver.ErrUnavailable }

// mostOwed is how many requests and releases may be under way at a node that does not answer. Each must be undone
// later, so a node that hangs must not collect more.
const mostOwed = 64

// errAway says that a node was not asked.
var errAway = errors.New("it cannot be used")

// acquire asks for a vote. A node that rests, or owes many answers, is not asked, because the vote would have to be
// undone.
func (n *node) acquire(ctx context.Context, r *driver.Request) (g driver.Grant, err error) {
	owed := n.busy.Add(1)
	defer n.busy.Add(-1)
	err = n.call(func(d *redislock.Driver) error {
		if err := n.guard.mayVote(ctx); err != nil {
			return fmt.Errorf("%s: %w: %w", n.name, errAway, err)
		}
		// A node that is late and owes many answers would only collect more requests.
		if owed > mostOwed && n.late.Load() {
			return fmt.Errorf("%s: %w: it owes %d answers", n.name, errAway, owed)
		}
		g, err = d.Acquire(ctx, r)
		return err
	})
	return g, err
}

// confirm and release ask the node once. Their callers repeat.
func (n *node) confirm(ctx context.Context, c *redislock.Confirmation) error {
	return n.call(func(d *redislock.Driver) error { return d.Confirm(ctx, c) })
}

func (n *node) release(ctx context.Context, r *driver.Release) error {
	return n.call(func(d *redislock.Driver) error { return d.Release(ctx, r) })
}

// renew renews the batch on this node, and calls done for each.
func (n *node) renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	d := n.driver()
	var err error
	if d == nil {
		err = n.failure()
	} else {
		err = n.guard.mayRenew(ctx)
	}
	if err != nil {
		for i := range batch {
			done(i, err)
		}
		return
	}
	d.Renew(ctx, batch, func(i int, err error) {
		// An answer shows that the node is not late any more.
		if err == nil {
			n.late.Store(false)
		}
		done(i, err)
	})
}
