// The node and its keeper, the goroutine that makes the links of one server, one after the other. conn.go waits for
// them here.

package rueidisconn

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

const (
	// firstPause is the first pause between two attempts to connect to a node. It doubles each time, up to
	// longestPause.
	firstPause, longestPause = 10 * time.Millisecond, time.Second

	// eagerPause is the longest pause while calls wait.
	eagerPause = 100 * time.Millisecond

	// settledAfter is how long a link must have lived for the pauses to begin anew. A server that accepts connections
	// and breaks them must not be asked without a pause.
	settledAfter = time.Second
)

// node is a server, or outside of a Cluster whoever is the primary. From its first use on, one goroutine, its keeper,
// makes sure that it has a link.
type node struct {
	conn *Conn
	addr string        // host:port in a Cluster; empty otherwise
	slot atomic.Uint32 // one that it was lately said to own; see introduce

	link   atomic.Pointer[link] // nil while there is none; read without mu
	wanted chan struct{}        // buffer of one: a call waits, so the keeper should hurry

	mu   sync.Mutex // guards what follows
	kept bool       // the keeper runs
	next *attempt   // the attempt that is under way, or comes next; never nil
}

// attempt is one try to make a link. Goroutines that want the link wait for its end.
type attempt struct {
	begun bool          // it is under way; guarded by the node's mu
	done  chan struct{} // closed at the end
	err   error         // why there is no link; set before done is closed
	last  bool          // the keeper has ended with this attempt, so no further one follows; set before done is closed
}

func newNode(c *Conn, addr string) *node {
	return &node{conn: c, addr: addr, wanted: make(chan struct{}, 1), next: newAttempt()}
}

func newAttempt() *attempt { return &attempt{done: make(chan struct{})} }

// await blocks until there is a link, or until an attempt to make one has failed that began after await did: one that
// was under way may have begun while the server was out of reach. It does not bound the wait itself; its callers do.
func (n *node) await(ctx context.Context) (*link, error) {
	for first := true; ; first = false {
		a, begun, err := n.attempt()
		if err != nil {
			return nil, err
		}
		// The attempt is taken first: a link is stored before its attempt ends, so one of both is seen.
		if l := n.link.Load(); l != nil {
			return l, nil
		}
		select {
		case n.wanted <- struct{}{}:
		default: // it has been said already
		}
		select {
		case <-a.done:
			if a.err != nil && (a.last || !first || !begun) {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-n.conn.base.Done():
			return nil, driver.ErrClosed
		}
	}
}

// attempt returns the attempt that is under way, which begun tells, or the one that comes next. It starts the keeper if
// there is none.
func (n *node) attempt() (a *attempt, begun bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.kept {
		if !n.conn.spawn(n.keep) {
			return nil, false, driver.ErrClosed
		}
		n.kept = true
	}
	return n.next, n.next.begun, nil
}

// begin records that the next attempt is under way.
func (n *node) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next.begun = true
}

// ended ends the attempt that is under way.
func (n *node) ended(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end(err)
}

// retire is ended for an attempt with which the keeper ends too. Those that wait look for the owner of their slot
// again. A later call to this node starts a new keeper.
func (n *node) retire(err error) {
	n.conn.forget(n)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept, n.next.last = false, true
	n.end(err)
}

// end is ended for a caller that holds the mutex.
func (n *node) end(err error) {
	n.next.err = err
	close(n.next.done)
	n.next = newAttempt()
}

// keep makes a link, makes a new one when it breaks, and tells the handler. It is the keeper's goroutine. It ends with
// c.base, or when a node that does not answer owns no slot any more.
func (n *node) keep() {
	c := n.conn
	var lost *link // the last one that broke, until there is a new one
	for failures := 0; c.base.Err() == nil; {
		n.begin()
		l, err := n.connect(c.base)
		if err != nil {
			if n.isGone() {
				n.retire(err)
				break
			}
			failures++
			n.ended(err)
			n.pause(c.base, failures)
			continue
		}
		// Stored before the attempt ends, see await; and before attends is read, so that Attend or this sees the other.
		n.link.Store(l)
		if n.conn.attends.Load() {
			n.attend(true)
		}
		n.ended(nil)
		// What was missed in between is asked for now that pushes arrive again.
		if lost != nil {
			c.resumed(lost.number)
		}
		lived := n.watch(c.base, l)
		if lived > settledAfter {
			failures = 0
		} else if failures++; failures > 1 {
			n.pause(c.base, failures)
		}
		lost = l
	}
	if lost != nil && c.base.Err() == nil {
		// There will be no new link: what was missed must be asked for elsewhere.
		c.resumed(lost.number)
	}
}

// watch blocks until the link has broken or must end, and returns how long it lived. The handler has been told then. It
// is silenced first, so that the handler hears nothing of the link after its Dropped.
func (n *node) watch(ctx context.Context, l *link) time.Duration {
	begin := time.Now()
	select {
	case <-l.hooks: //nolint:errcheck // rueidis says that the connection has ended; why does not matter
		l.fail(resp.ErrBroken)
	case <-l.broken:
		l.fail(resp.ErrBroken)
	case <-l.failed: // a call found out
	case <-ctx.Done():
		l.fail(driver.ErrClosed)
	}
	lived := time.Since(begin)
	l.silence()
	if ctx.Err() == nil {
		n.conn.dropped(l.number)
	}
	// Closing takes up to a second if the server hangs. That must not delay the next link.
	if !n.conn.spawn(l.carrier.Close) {
		l.carrier.Close()
	}
	return lived
}

// connect makes a link. If ctx ends first it returns at once, and a link that comes later is closed.
func (n *node) connect(ctx context.Context) (*link, error) {
	type result struct {
		link *link
		err  error
	}
	// Unbuffered: the goroutine must know whether the link was taken.
	made := make(chan result)
	go func() { // ends when rueidis gives up connecting, after the time limit of its dialer
		l, err := n.open(ctx)
		select {
		case made <- result{l, err}:
		case <-ctx.Done():
			if l != nil {
				l.carrier.Close()
			}
		}
	}()
	select {
	case r := <-made:
		return r.link, r.err
	case <-ctx.Done():
		return nil, driver.ErrClosed
	}
}

// open makes a link, for as long as rueidis takes. A link of our own comes first; if the server or a dialer does not
// allow that, it is a connection of the client.
func (n *node) open(ctx context.Context) (*link, error) {
	if n.conn.respOpts != nil {
		if l, err := n.openResp(ctx); mayBeOurs(err) {
			return l, err
		}
	}
	source, err := n.source(ctx)
	if err != nil {
		return nil, err
	}
	peers := n.conn.peers() // before connecting: if they change meanwhile, the link counts as outdated
	client, _ := source.Dedicate()
	l := newLink(n, peers)
	if err := l.open(ctx, client); err != nil {
		client.Close()
		return nil, err
	}
	return l, nil
}

// source returns the client of this node alone.
func (n *node) source(ctx context.Context) (rueidis.Client, error) {
	if n.addr == "" {
		return n.conn.client, nil // it follows the primary itself
	}
	return n.conn.introduce(ctx, n.addr, uint16(n.slot.Load()))
}

// pause waits before the next attempt. Up to eagerPause it waits in any case, and beyond that only until a call wants
// the link. Half of the time is random, so that clients do not come back together.
func (n *node) pause(ctx context.Context, failures int) {
	d := min(firstPause<<min(failures-1, 10), longestPause)
	d = d/2 + rand.N(d/2)
	if !enginekit.Pause(ctx, min(d, eagerPause)) || d <= eagerPause {
		return
	}
	rest := time.NewTimer(d - eagerPause)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-n.wanted: // a call waits
	case <-ctx.Done():
	}
}

// isGone reports whether a node of a Cluster that does not answer has lost all its slots. It asks for the table, which
// blocks.
func (n *node) isGone() bool {
	c := n.conn
	return c.cluster && c.refresh(c.base) == nil && !c.owns(n)
}
