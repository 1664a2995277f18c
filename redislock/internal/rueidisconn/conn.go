// The Conn: what it keeps of servers, links and goroutines, and how a call finds its link. node.go keeps the links,
// cluster.go the owners of slots, open.go and New make a Conn.

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
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

// farewell is how long Close waits for the client to close its connections.
const farewell = 500 * time.Millisecond

// Conn is a [conn.Conn] over a rueidis client. For each node it keeps one connection of its own, the link, over which
// the calls go and the pushes come. rueidis's shared connections do not tell over which of them a reply came, so pushes
// could not be trusted.
type Conn struct {
	client     rueidis.Client // finds the servers; used for WAIT and for operators
	ownsClient bool           // Close closes the client
	sockets    *sockets       // the client's, for Close; nil if they are not known
	respOpts   *resp.Options  // how links connect without the client; nil if they are the client's connections
	cluster    bool           // constant: the client is one for a Cluster

	// What Start sets; constant afterwards.
	channel string // the driver's own channel
	handler conn.Handler
	sharded bool            // all primaries know sharded channels
	base    context.Context //nolint:containedctx // ended by Close: links and what runs in the background end with it
	stop    context.CancelFunc

	only    *node                            // outside of a Cluster: the primary, whoever that is
	owners  [conn.Slots]atomic.Pointer[node] // in a Cluster, by slot; nil while the owner is not known
	links   atomic.Uint64                    // how many links there were: their numbers
	attends atomic.Bool                      // see Attend
	tasks   sync.WaitGroup                   // what spawn runs

	mu         sync.Mutex       // guards what follows; nothing is waited for under it
	closed     bool             // Close was called: nothing is spawned any more
	nodes      map[string]*node // of a Cluster, by address
	refreshing *tableRefresh    // nil if none is under way
}

var _ conn.Conn = (*Conn)(nil)

// New returns a Conn over client, which Close closes if own is set. Its links are connections of the client.
func New(client rueidis.Client, own bool) *Conn {
	return &Conn{
		client: client, ownsClient: own, cluster: client.Mode() == rueidis.ClientModeCluster,
		nodes: make(map[string]*node),
	}
}

// Start connects to the primary, or to any node of a Cluster, whose other links are made when they are first needed. It
// blocks until the first link is there or ctx ends. After an error the Conn can only be closed.
func (c *Conn) Start(ctx context.Context, channel string, h conn.Handler) error {
	c.channel, c.handler = channel, h
	// WithoutCancel, because ctx bounds the start alone.
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

// Sharded reports whether all primaries know SPUBLISH.
func (c *Conn) Sharded() bool { return c.sharded }

// findSharded asks the primaries for their versions. A primary that does not answer is taken to be like the others.
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

// Close ends the links and all goroutines of the Conn, and waits for them. Only the making of a connection to a server
// that hangs may outlast it, until the client's own time limit: rueidis offers no way to end that. A server that hangs
// makes Close take a second.
func (c *Conn) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
	c.tasks.Wait()
	if first && c.ownsClient {
		c.closeClient()
	}
	return nil
}

// closeClient closes the client, but does not wait longer than farewell for servers that hang. Then the sockets are
// closed under it.
func (c *Conn) closeClient() {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	enginekit.CloseWithin(ctx, func() error { c.client.Close(); return nil })
	if c.sockets != nil {
		c.sockets.close()
	}
}

// spawn runs f in a goroutine that Close waits for, so f must end soon after c.base has. If c is closed it returns
// false and does not run f. Under the mutex, so that no task is added after Close has begun to wait.
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
// none it blocks until there is one. An error is a *conn.RefusedError, because nothing has been sent. The usual case
// takes no lock.
func (c *Conn) link(ctx context.Context, slot uint16, addr string) (*link, error) {
	if n := c.owner(slot); n != nil && addr == "" {
		if l := n.link.Load(); l != nil {
			return l, nil
		}
	}
	return c.awaitLink(ctx, slot, addr)
}

// awaitLink is link for the case that there may be none.
func (c *Conn) awaitLink(ctx context.Context, slot uint16, addr string) (*link, error) {
	var t conn.Try
	var last error // why there was no link, as far as the server has said
	t.Impatient()  // the time counts from now on
	for {
		n, err := c.node(ctx, slot, addr)
		if err == nil {
			var l *link
			if l, err = c.awaitAt(ctx, n); err == nil {
				return l, nil
			}
		}
		if ctx.Err() != nil && last != nil && errors.Is(err, ctx.Err()) {
			return nil, conn.GaveUp(ctx, last)
		}
		if ctx.Err() != nil || !c.passes(err) || t.Impatient() {
			return nil, &conn.RefusedError{Err: err}
		}
		last = err
		// n.await waits by itself for the next attempt; without a node there is nothing to wait for.
		if n == nil {
			if conn.Pause(ctx) != nil {
				return nil, conn.GaveUp(ctx, last)
			}
		}
	}
}

// awaitAt waits for the link of n. In a Cluster it does so for silenceTime only: while a node hangs, another may get
// its slots, so the table is asked for anew.
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

// passes reports whether waiting for a link makes sense after one could not be made: another server may take over, or
// the refusal passes by itself.
func (c *Conn) passes(err error) bool {
	if errors.Is(err, driver.ErrClosed) {
		return false
	}
	return c.failsOver() || judge(err, "").Verdict == conn.Later
}

// failsOver reports whether another server may soon take the place of one that cannot be reached.
func (c *Conn) failsOver() bool { return c.client.Mode() != rueidis.ClientModeStandalone }

// FailsOver implements [conn.Failover].
func (c *Conn) FailsOver() bool { return c.failsOver() }

// Addrs returns the servers that rueidis knows.
func (c *Conn) Addrs() []string { return slices.Sorted(maps.Keys(c.client.Nodes())) }

// node returns the owner of a slot, or the node with the given address if that is not empty. If the owner is not known
// it asks for the table once.
func (c *Conn) node(ctx context.Context, slot uint16, addr string) (*node, error) {
	if addr != "" {
		return c.nodeAt(addr, slot), nil
	}
	if n := c.owner(slot); n != nil {
		return n, nil
	}
	// Only a slot without an owner is worth a question. A wrong owner is found out by a redirect.
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	if n := c.owner(slot); n != nil {
		return n, nil
	}
	return nil, conn.ErrNoOwner
}

// owner returns the node that owns a slot, or nil if that is not known. It takes no lock.
func (c *Conn) owner(slot uint16) *node {
	if !c.cluster {
		return c.only
	}
	return c.owners[slot].Load()
}

// peers returns the addresses of the servers that rueidis uses outside of a Cluster: the primary, which Sentinels may
// have replaced, and replicas if the client reads from them. A change of it means that a link may lead to a former
// primary.
func (c *Conn) peers() []string {
	if c.cluster {
		return nil
	}
	return slices.Sorted(maps.Keys(c.client.Nodes()))
}
