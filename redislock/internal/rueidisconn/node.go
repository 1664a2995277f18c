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
	// Between two tries to connect to a node pass firstPause, doubled each time up to longestPause.
	firstPause, longestPause = 10 * time.Millisecond, time.Second

	// eagerPause is the longest pause while calls wait.
	eagerPause = 100 * time.Millisecond

	// settledAfter is how long a link must have lived for the pauses to begin anew. A server that accepts connections
	// and breaks them must not be asked without a pause.
	settledAfter = time.Second
)

// node is a server, or whoever is the primary if it is not a Cluster. From its first use on one goroutine, its
// keeper, sees to it that there is a link.
type node struct {
	conn *Conn
	addr string        // in a Cluster
	slot atomic.Uint32 // one that it was last said to own; see introduce

	link   atomic.Pointer[link] // nil while there is none
	wanted chan struct{}        // buffered: a call waits, so the keeper should hurry

	mu   sync.Mutex // guards what follows
	kept bool       // the keeper runs
	next *attempt
}

// attempt is one try to make a link. Who waits for a link waits for the end of the attempt that is under way.
type attempt struct {
	begun bool          // guarded by the node's mu
	done  chan struct{} // closed at the end
	err   error         // set before that
	last  bool          // so too: the keeper has ended with it
}

func newNode(c *Conn, addr string) *node {
	return &node{conn: c, addr: addr, wanted: make(chan struct{}, 1), next: newAttempt()}
}

func newAttempt() *attempt { return &attempt{done: make(chan struct{})} }

// await returns the link when there is one, or an error when an attempt to make it has failed that began later: one
// that was under way may have begun while the server was out of reach.
func (n *node) await(ctx context.Context) (*link, error) {
	for first := true; ; first = false {
		a, begun, err := n.attempt()
		if err != nil {
			return nil, err
		}
		// Looked at after the attempt was taken: a link is stored before its attempt ends.
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

// attempt returns the attempt that is under way, as begun says, or comes next. It starts the keeper if there is none.
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

// begin says that the next attempt is under way.
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

// retire is ended when the keeper ends too. Who waits looks for the owner of its slot again; a later call to this node
// starts a new keeper.
func (n *node) retire(err error) {
	n.conn.forget(n)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kept, n.next.last = false, true
	n.end(err)
}

// end is ended under the mutex.
func (n *node) end(err error) {
	n.next.err = err
	close(n.next.done)
	n.next = newAttempt()
}

// keep makes a link, makes it anew when it breaks, and tells the handler. It ends with c.base, or when a node that does
// not answer owns no slot any more.
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
		n.link.Store(l)
		if n.conn.attends.Load() {
			n.attend(true)
		}
		n.ended(nil)
		if lost != nil {
			c.dropped(lost.number)
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
		c.dropped(lost.number) // there will be no new one: what was missed must be asked for elsewhere
	}
}

// watch returns when the link has broken or is to end, with how long it lived. The handler has been told then.
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
	// It takes up to a second if the server hangs, which must not delay the next link.
	if !n.conn.spawn(l.carrier.Close) {
		l.carrier.Close()
	}
	return lived
}

// connect makes a link. If ctx ends first it returns at once, and what comes of it later is closed.
func (n *node) connect(ctx context.Context) (*link, error) {
	type result struct {
		link *link
		err  error
	}
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

// open makes a link, for as long as rueidis wants.
func (n *node) open(ctx context.Context) (*link, error) {
	if n.conn.itself != nil {
		if l, err := n.openResp(ctx); own(err) {
			return l, err
		}
	}
	source, err := n.source(ctx)
	if err != nil {
		return nil, err
	}
	peers := n.conn.peers() // before: if they change in between, the link counts as outdated
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

// pause waits before the next attempt.
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

// isGone reports whether a node of a Cluster that does not answer has no slot any more.
func (n *node) isGone() bool {
	c := n.conn
	return c.cluster && c.refresh(c.base) == nil && !c.owns(n)
}
