package redislock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// rueidisPatience is how long a call is tried again that a server refuses for a reason that passes: it loads its data, a
// failover is under way, a slot is on its way to another node.
const rueidisPatience = 2 * time.Second

// rueidisFarewell is how long Close waits for the client to close its connections.
const rueidisFarewell = 500 * time.Millisecond

// rueidisConn is a Conn over a rueidis client. For each node it keeps one connection of its own, its link, over which the
// calls go and the pushes come: rueidis's shared connections do not tell which of them a reply came over.
type rueidisConn struct {
	client  rueidis.Client
	own     bool          // Close closes the client
	sockets *sockets      // of the client, for Close; nil if they are not known
	wires   *resp.Options // how links connect by themselves; nil if they are connections of the client
	cluster bool

	// What Start sets.
	channel string
	handler Handler
	sharded bool
	base    context.Context //nolint:containedctx // ended by Close: links and what runs in the background end with it
	stop    context.CancelFunc

	only   *rueidisNode                            // if it is not a Cluster
	owners [conn.Slots]atomic.Pointer[rueidisNode] // else; nil while the owner of the slot is not known
	links  atomic.Uint64                           // how many there were
	tasks  sync.WaitGroup                          // what go runs

	mu         sync.Mutex // guards what follows; nothing is waited for under it
	closed     bool
	nodes      map[string]*rueidisNode // of a Cluster, by address
	refreshing *rueidisRefresh         // nil if none is under way
}

var _ Conn = (*rueidisConn)(nil)

// newRueidisConn returns a Conn over client, which Close closes if own.
func newRueidisConn(client rueidis.Client, own bool) *rueidisConn {
	return &rueidisConn{
		client: client, own: own, cluster: client.Mode() == rueidis.ClientModeCluster,
		nodes: make(map[string]*rueidisNode),
	}
}

// Start connects: to the primary, or to any node of a Cluster, whose other links are made when they are needed first.
// After an error the Conn can only be closed.
func (c *rueidisConn) Start(ctx context.Context, channel string, h Handler) error {
	c.channel, c.handler = channel, h
	c.base, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if !c.cluster {
		c.only = newRueidisNode(c, "")
		_, err := c.link(ctx, 0, "")
		return err
	}
	if err := c.refresh(ctx); err != nil {
		return &RefusedError{Err: err}
	}
	return c.findSharded(ctx)
}

// Sharded reports whether all nodes know SPUBLISH.
func (c *rueidisConn) Sharded() bool { return c.sharded }

// findSharded asks the primaries for their versions. One that does not answer counts as the others.
func (c *rueidisConn) findSharded(ctx context.Context) error {
	found := c.primaries(ctx)
	if len(found) == 0 {
		return &RefusedError{Err: errors.Join(errors.New("no primary of the Cluster answers"), ctx.Err())}
	}
	c.sharded = true
	for _, p := range found {
		c.sharded = c.sharded && p.major >= 7
	}
	return nil
}

// Close ends the links and what runs in the background. Only the start of a connection that hangs may outlast it, until
// the client's own time limit: rueidis offers no way to end that. A server that hangs makes Close take a second.
func (c *rueidisConn) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
	c.tasks.Wait()
	if first && c.own {
		c.closeClient()
	}
	return nil
}

// closeClient closes the client, but does not wait for one that waits for servers that hang.
func (c *rueidisConn) closeClient() {
	closed := make(chan struct{})
	go func() { // ends when rueidis gives up on its connections
		c.client.Close()
		close(closed)
	}()
	timer := time.NewTimer(rueidisFarewell)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	if c.sockets != nil {
		c.sockets.close()
	}
}

// spawn runs f in a goroutine that Close waits for, so f must end soon after c.base has. It reports false, and does not
// run it, if c is closed.
func (c *rueidisConn) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks.Add(1)
	go func() { // f ends with c.base
		defer c.tasks.Done()
		f()
	}()
	return true
}

// link returns the link to the owner of a slot, or to the node with the given address if that is not empty. If there is
// none it waits until there is. An error is a *RefusedError, because nothing has been sent.
func (c *rueidisConn) link(ctx context.Context, slot uint16, addr string) (*rueidisLink, error) {
	if n := c.owner(slot); n != nil && addr == "" {
		if l := n.link.Load(); l != nil {
			return l, nil
		}
	}
	return c.awaitLink(ctx, slot, addr)
}

// awaitLink is link when there may be none.
func (c *rueidisConn) awaitLink(ctx context.Context, slot uint16, addr string) (*rueidisLink, error) {
	for since := time.Now(); ; {
		n, err := c.node(ctx, slot, addr)
		if err == nil {
			var l *rueidisLink
			if l, err = c.awaitAt(ctx, n); err == nil {
				return l, nil
			}
		}
		if ctx.Err() != nil || !c.passes(err) || time.Since(since) > rueidisPatience {
			return nil, &RefusedError{Err: err}
		}
		if n == nil && !rueidisPause(ctx) { // n.await takes its time itself
			return nil, &RefusedError{Err: ctx.Err()}
		}
	}
}

// awaitAt waits for the link of n. In a Cluster not for long: while a node hangs another may get its slots.
func (c *rueidisConn) awaitAt(ctx context.Context, n *rueidisNode) (*rueidisLink, error) {
	if !c.cluster {
		return n.await(ctx)
	}
	short, cancel := context.WithTimeout(ctx, rueidisSilence)
	defer cancel()
	l, err := n.await(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = errors.Join(errHangs, c.refresh(ctx))
	}
	return l, err
}

// passes reports whether it makes sense to wait until there is a link, after one could not be made.
func (c *rueidisConn) passes(err error) bool {
	if errors.Is(err, driver.ErrClosed) {
		return false
	}
	return c.failsOver() || judge(err, "").verdict == later
}

// failsOver reports whether another server may soon answer in the place of one that cannot be reached.
func (c *rueidisConn) failsOver() bool { return c.client.Mode() != rueidis.ClientModeStandalone }

// FailsOver is failsOver.
func (c *rueidisConn) FailsOver() bool { return c.failsOver() }

// Addrs are the servers that rueidis knows.
func (c *rueidisConn) Addrs() []string { return slices.Sorted(maps.Keys(c.client.Nodes())) }

// node returns the owner of a slot, or the node with the given address if that is not empty.
func (c *rueidisConn) node(ctx context.Context, slot uint16, addr string) (*rueidisNode, error) {
	if addr != "" {
		return c.nodeAt(addr, slot), nil
	}
	if n := c.owner(slot); n != nil {
		return n, nil
	}
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	if n := c.owner(slot); n != nil {
		return n, nil
	}
	return nil, conn.ErrNoOwner
}

// owner returns the node that owns a slot, or nil if that is not known.
func (c *rueidisConn) owner(slot uint16) *rueidisNode {
	if !c.cluster {
		return c.only
	}
	return c.owners[slot].Load()
}

// peers returns the addresses of the servers that rueidis uses, if it is not a Cluster: the primary, which Sentinels may
// have replaced, and replicas if it reads from them.
func (c *rueidisConn) peers() []string {
	if c.cluster {
		return nil
	}
	return slices.Sorted(maps.Keys(c.client.Nodes()))
}
