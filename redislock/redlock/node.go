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

// reconnect is between two attempts to reach a node for the first time. Once it was reached, redislock sees to it.
const reconnect = 250 * time.Millisecond

// node is one of the servers.
type node struct {
	dialer
	opts  *Options
	tried chan struct{} // closed when the first attempt to connect is over
	late  atomic.Bool   // it let somebody wait in vain, and has not answered since
	busy  atomic.Int64  // how many requests and releases are under way

	mu    sync.Mutex // guards what follows
	d     *redislock.Driver
	guard *guard
	err   error // of the latest attempt
}

func newNode(dial dialer, opts *Options) *node {
	return &node{dialer: dial, opts: opts, tried: make(chan struct{}), err: errors.New("not connected yet")}
}

// connect tries until it has a driver, or ctx ends.
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

func (n *node) connectOnce(ctx context.Context) bool {
	conn, err := n.dial(ctx)
	var d *redislock.Driver
	var g *guard
	if err == nil {
		g = newGuard(conn, n.opts)
		d, err = redislock.StartConn(ctx, g.conn(), n.opts.node())
	}
	if err == nil {
		if err = g.look(ctx, false); err != nil && !errors.Is(err, errRests) {
			_ = d.Close()
		} else {
			err = nil
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil && ctx.Err() != nil { // nobody else would close it
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

func (n *node) close() error {
	if d := n.driver(); d != nil {
		return d.Close()
	}
	return nil
}

// call runs f with the node's driver. An answer, whatever it is, shows that the node lives.
func (n *node) call(f func(d *redislock.Driver) error) error {
	d := n.driver()
	if d == nil {
		return n.failure()
	}
	err := f(d)
	if said := driver.Refusal(err); said != nil {
		n.late.Store(false)
		return &nodeRefusal{node: n.name, text: said.Error(), hint: said.Hint, open: said.Open}
	}
	if err == nil || driver.IsDefinite(err) || errors.Is(err, driver.ErrLost) {
		n.late.Store(false)
	}
	return err
}

// nodeRefusal is the refusal of one node. It is no driver.RefusedError, which would be the lock's.
type nodeRefusal struct { //nolint:errname // it is no error of its own, but a node's part of one
	node, text, hint string
	open             bool
}

func (e *nodeRefusal) Error() string { return e.text }

// Is matches driver.ErrUnavailable: the node has no vote for us.
func (e *nodeRefusal) Is(t error) bool { return t == driver.ErrUnavailable }

// mostOwed is how many requests and releases may be under way at a node that does not answer. Each has to be undone.
const mostOwed = 64

// errAway says that a node was not asked.
var errAway = errors.New("it cannot be used")

// acquire asks for a vote. A node that rests, or owes many answers, is not asked, because that would have to be undone.
func (n *node) acquire(ctx context.Context, r *driver.Request) (g driver.Grant, err error) {
	owed := n.busy.Add(1)
	defer n.busy.Add(-1)
	err = n.call(func(d *redislock.Driver) error {
		if err := n.guard.rests(); err != nil {
			return fmt.Errorf("%s: %w: %w", n.name, errAway, err)
		}
		if owed > mostOwed && n.late.Load() {
			return fmt.Errorf("%s: %w: it owes %d answers", n.name, errAway, owed)
		}
		g, err = d.Acquire(ctx, r)
		return err
	})
	return g, err
}

func (n *node) confirm(ctx context.Context, c *redislock.Confirmation) error {
	return n.call(func(d *redislock.Driver) error { return d.Confirm(ctx, c) })
}

func (n *node) release(ctx context.Context, r *driver.Release) error {
	return n.call(func(d *redislock.Driver) error { return d.Release(ctx, r) })
}

// renew renews what is given, and calls done for each.
func (n *node) renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	d := n.driver()
	if d == nil {
		err := n.failure()
		for i := range batch {
			done(i, err)
		}
		return
	}
	d.Renew(ctx, batch, func(i int, err error) {
		if err == nil {
			n.late.Store(false)
		}
		done(i, err)
	})
}
