package rueidisconn

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

// farewell is how long Close waits for the client to close its connections.
const farewell = 500 * time.Millisecond

// Conn is a [conn.Conn] over a rueidis client. For each node it keeps one connection of its own, its link, over which
// the calls go and the pushes come: rueidis's shared connections do not tell which of them a reply came over.
type Conn struct {
	client  rueidis.Client
	own     bool          // Close closes the client
	sockets *sockets      // of the client, for Close; nil if they are not known
	itself  *resp.Options // how links connect by themselves; nil if they are connections of the client
	cluster bool

	// What Start sets.
	channel string
	handler conn.Handler
	sharded bool
	base    context.Context //nolint:containedctx // ended by Close: links and what runs in the background end with it
	stop    context.CancelFunc

	only    *node                            // if it is not a Cluster
	owners  [conn.Slots]atomic.Pointer[node] // else; nil while the owner of the slot is not known
	links   atomic.Uint64                    // how many there were
	attends atomic.Bool                      // see Attend
	tasks   sync.WaitGroup                   // what go runs

	mu         sync.Mutex // guards what follows; nothing is waited for under it
	closed     bool
	nodes      map[string]*node // of a Cluster, by address
	refreshing *tableRefresh    // nil if none is under way
}

var _ conn.Conn = (*Conn)(nil)

// New returns a Conn over client, which Close closes if own. Its links are connections of the client.
func New(client rueidis.Client, own bool) *Conn {
	return &Conn{
		client: client, own: own, cluster: client.Mode() == rueidis.ClientModeCluster,
		nodes: make(map[string]*node),
	}
}

// Start connects: to the primary, or to any node of a Cluster, whose other links are made when they are needed first.
// After an error the Conn can only be closed.
func (c *Conn) Start(ctx context.Context, channel string, h conn.Handler) error {
	c.channel, c.handler = channel, h
	c.base, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	if !c.cluster {
		c.only = newNode(c, "")
		_, err := c.link(ctx, 0, "")
		return err
	}
	if err := c.refresh(ctx); err != nil {
		return &conn.RefusedError{Err: err}
	}
	return c.findSharded(ctx)
}

// Sharded reports whether all nodes know SPUBLISH.
func (c *Conn) Sharded() bool { return c.sharded }

// findSharded asks the primaries for their versions. One that does not answer counts as the others.
func (c *Conn) findSharded(ctx context.Context) error {
	found := c.primaries(ctx)
	if len(found) == 0 {
		return &conn.RefusedError{Err: errors.Join(errors.New("no primary of the Cluster answers"), ctx.Err())}
	}
	c.sharded = true
	for _, p := range found {
		c.sharded = c.sharded && p.major >= 7
	}
	return nil
}

// Close ends the links and what runs in the background. Only the start of a connection that hangs may outlast it, until
// the client's own time limit: rueidis offers no way to end that. A server that hangs makes Close take a second.
func (c *Conn) Close() error {
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
func (c *Conn) closeClient() {
	closed := make(chan struct{})
	go func() { // ends when rueidis gives up on its connections
		c.client.Close()
		close(closed)
	}()
	timer := time.NewTimer(farewell)
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
func (c *Conn) spawn(f func()) bool {
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
func (c *Conn) link(ctx context.Context, slot uint16, addr string) (*link, error) {
	if n := c.owner(slot); n != nil && addr == "" {
		if l := n.link.Load(); l != nil {
			return l, nil
		}
	}
	return c.awaitLink(ctx, slot, addr)
}

// awaitLink is link when there may be none.
func (c *Conn) awaitLink(ctx context.Context, slot uint16, addr string) (*link, error) {
	var t conn.Try
	t.Impatient() // from now on
	for {
		n, err := c.node(ctx, slot, addr)
		if err == nil {
			var l *link
			if l, err = c.awaitAt(ctx, n); err == nil {
				return l, nil
			}
		}
		if ctx.Err() != nil || !c.passes(err) || t.Impatient() {
			return nil, &conn.RefusedError{Err: err}
		}
		if n == nil { // n.await takes its time itself
			if err := conn.Pause(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// awaitAt waits for the link of n. In a Cluster not for long: while a node hangs another may get its slots.
func (c *Conn) awaitAt(ctx context.Context, n *node) (*link, error) {
	if !c.cluster {
		return n.await(ctx)
	}
	short, cancel := context.WithTimeout(ctx, silenceTime)
	defer cancel()
	l, err := n.await(short)
	if err != nil && short.Err() != nil && ctx.Err() == nil {
		err = errors.Join(errHangs, c.refresh(ctx))
	}
	return l, err
}

// passes reports whether it makes sense to wait until there is a link, after one could not be made.
func (c *Conn) passes(err error) bool {
	if errors.Is(err, driver.ErrClosed) {
		return false
	}
	return c.failsOver() || judge(err, "").Verdict == conn.Later
}

// failsOver reports whether another server may soon answer in the place of one that cannot be reached.
func (c *Conn) failsOver() bool { return c.client.Mode() != rueidis.ClientModeStandalone }

// FailsOver is failsOver.
func (c *Conn) FailsOver() bool { return c.failsOver() }

// Addrs are the servers that rueidis knows.
func (c *Conn) Addrs() []string { return slices.Sorted(maps.Keys(c.client.Nodes())) }

// node returns the owner of a slot, or the node with the given address if that is not empty.
func (c *Conn) node(ctx context.Context, slot uint16, addr string) (*node, error) {
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
func (c *Conn) owner(slot uint16) *node {
	if !c.cluster {
		return c.only
	}
	return c.owners[slot].Load()
}

// peers returns the addresses of the servers that rueidis uses, if it is not a Cluster: the primary, which Sentinels
// may have replaced, and replicas if it reads from them.
func (c *Conn) peers() []string {
	if c.cluster {
		return nil
	}
	return slices.Sorted(maps.Keys(c.client.Nodes()))
}
