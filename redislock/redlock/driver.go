// The Driver: construction, traits and Close. node.go connects to the servers, opening.go gives new ones their marks,
// acquire.go begins the walk of a request.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/rueidis"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// traits are constant; Traits returns a copy. The reasons stand in docs/evidence/engines.md.
var traits = driver.Traits{
	Engine: "redlock", Lifetime: driver.Leases,
	Kinds:   []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindElection},
	Resumes: true, QueueTimeout: new(redislock.Driver).Traits().QueueTimeout, // a node's queue is redislock's
	Unsupported: []driver.Unsupported{
		{
			Ability: driver.NamedOwners,
			Reason:  "two nodes may know different holds of an owner, so the holds have no token in common",
		},
		{
			Ability: driver.Order,
			Reason: "each node has a queue of its own, and requests that come at once may stand in another order " +
				"on each",
		},
		{
			Ability: driver.Recalls,
			Reason:  "each node would recall its own vote, and a majority has to be given back together",
		},
		{
			Ability: driver.Adoption,
			Reason:  "a hold is the votes of a majority, which cannot go to another client in one step",
		},
		{
			Ability: driver.LockDelays,
			Reason:  "a node cannot tell the end of a hold that a majority had from that of one that never came about",
		},
		{
			Ability: driver.Conversion,
			Reason:  "two nodes may answer differently to two holders who ask at once, and then neither could go back",
		},
		{
			Ability: driver.Ability(driver.KindSemaphore),
			Reason:  "two majorities may have one node in common, so more would be let in than there are permits",
		},
		{Ability: driver.Ability(driver.KindLatch), Reason: "counts on nodes that each miss some of them have no sum"},
		{
			Ability: driver.Ability(driver.KindCond),
			Reason:  "each node has a queue of its own, so a signal would wake another on each",
		},
	},
}

// fewest is the least number of nodes: two have the same majority as three, so each of them would be needed.
const fewest = 3

// Driver is one client's access to locks that a majority of independent Redis servers keeps. It is safe for concurrent
// use and must not be copied. [New] and URLs make one.
type Driver struct {
	opts   Options
	nodes  []*node // constant; the index names a node everywhere
	quorum int     // how many votes are enough: a majority, or more while the set is changed
	joint  bool    // the set is being changed, and this client names both

	reconnections *reconnections // of all nodes; constant

	base    context.Context //nolint:containedctx // ended by Close: what runs in the background ends with it
	stop    context.CancelFunc
	tasks   sync.WaitGroup // what spawn runs
	trip    atomic.Int64   // how long a majority takes to answer, in nanoseconds; a moving average
	mu      sync.Mutex     // guards what follows; nothing blocks under it; it may be taken under claim.mu
	closed  bool
	current map[requestKey]*claim // acquisitions under way, holds, and releases that are not complete
}

// New returns a driver over clients of independent servers: none is a replica of another, and none is named twice.
// There must be at least three, and there should be an odd number; the logger gets a warning otherwise. It blocks until
// all nodes have answered, or until a majority has and the others are late. The others are connected to in the
// background as they come. Close leaves the clients open. A nil opts means the defaults.
func New(nodes []rueidis.Client, opts *Options) (*Driver, error) {
	former := opts.former()
	all := slices.Clone(nodes)
	for _, client := range former {
		if !slices.Contains(nodes, client) {
			all = append(all, client)
		}
	}
	dials := make([]dialer, len(all))
	for i, client := range all {
		if client == nil {
			return nil, fmt.Errorf("redlock: the client of node %d is nil", i+1)
		}
		if client.Mode() != rueidis.ClientModeStandalone {
			return nil, fmt.Errorf("redlock: the client of node %d is of %s; a node is one server alone, because a "+
				"failover forgets votes: set ForceSingleClient, or use redislock", i+1, client.Mode())
		}
		dials[i] = dialer{
			name: "node " + strconv.Itoa(i+1), former: slices.Contains(former, client), dropped: i >= len(nodes),
			dial: func(context.Context) (redislock.Conn, error) { return redislock.RueidisConn(client), nil },
		}
		for address := range client.Nodes() {
			dials[i].address = address
		}
	}
	return open(context.Background(), dials, opts) //nolint:forbidigo // as sql.OpenDB, it takes none
}

// open connects to the nodes and returns a driver over them. Each node has a goroutine that connects; if the start
// fails, Close ends them.
func open(ctx context.Context, dials []dialer, opts *Options) (*Driver, error) {
	o, err := opts.withDefaults()
	if err == nil {
		err = checkNodes(dials)
	}
	if err != nil {
		return nil, err
	}
	sets := newSets(dials)
	if n := len(sets.current); n%2 == 0 {
		o.Logger.Warn("redlock: nodes: "+evenAdvice(n), "check", "nodes")
	}
	d := &Driver{
		opts: o, quorum: sets.quorum(), joint: sets.former != nil, current: make(map[requestKey]*claim),
		reconnections: &reconnections{heed: make(map[*func()]struct{})},
	}
	// WithoutCancel, because ctx bounds the start alone.
	d.base, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	for i, dial := range dials {
		n := newNode(dial, &d.opts, sets, i, d.reconnections.tell)
		d.nodes = append(d.nodes, n)
		d.spawn(func() { n.connect(d.base) })
	}
	err = d.awaitNodes(ctx)
	if err == nil {
		err = d.begin(ctx)
	}
	if err != nil {
		enginekit.CloseWithin(ctx, d.Close)
		return nil, err
	}
	return d, nil
}

// checkNodes refuses lists that cannot be meant.
func checkNodes(dials []dialer) error {
	current, former, both := 0, 0, 0
	for i, dial := range dials {
		if slices.ContainsFunc(dials[:i], func(o dialer) bool { return o.name == dial.name }) {
			return fmt.Errorf("redlock: %s is named twice, so that it would have two votes", dial.name)
		}
		if !dial.dropped {
			current++
		}
		if dial.former {
			former++
		}
		if !dial.dropped && dial.former {
			both++
		}
	}
	for _, n := range []int{current, former} {
		if n < fewest && (n == current || n > 0) {
			return fmt.Errorf("redlock: there are %d nodes, and a node that fails must be outvoted; name at least %d, "+
				"better 5, independent servers, or use redis:// for one", n, fewest)
		}
	}
	if max(former, current) == both {
		return errors.New("redlock: the former servers are the same as the current ones; name the former ones only " +
			"while they are changed")
	}
	return nil
}

// evenAdvice is the warning about an even number of nodes.
func evenAdvice(n int) string {
	return fmt.Sprintf(
		"%d nodes survive no more failures than %d would, and split votes are likelier; use an odd number", n, n-1)
}

// late is how long open waits for further nodes when it has a majority.
const late = 250 * time.Millisecond

// awaitNodes returns when all nodes have been tried, or when a majority is there and the others are late. Waiting for
// all is worth a moment: with all votes an acquisition costs one round trip, and only all nodes together can be found
// new.
func (d *Driver) awaitNodes(ctx context.Context) error {
	all := make(chan struct{})
	d.spawn(func() { // ends with the nodes' first attempts, or with d
		defer close(all)
		for _, n := range d.nodes {
			select {
			case <-n.tried:
			case <-d.base.Done():
				return
			}
		}
	})
	for wait := late; ; {
		timer := time.NewTimer(wait)
		select {
		case <-all:
			timer.Stop()
			return d.enough()
		case <-timer.C:
			if d.enough() == nil {
				return nil
			}
			wait = late / 10 // the majority is not there yet: look more often
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(d.enough(), ctx.Err())
		}
	}
}

// enough returns nil if a majority of the nodes is connected.
func (d *Driver) enough() error {
	connected, errs := 0, make([]error, 0, len(d.nodes))
	for _, n := range d.nodes {
		if n.driver() != nil {
			connected++
		} else {
			// The reasons of all nodes are told, because which of them would help is for the operator to see.
			errs = append(errs, n.failure())
		}
	}
	if connected >= d.quorum {
		return nil
	}
	return &driver.UnavailableError{Op: "open", Err: fmt.Errorf("%d of %d nodes can be used, and %d are needed: %w",
		connected, len(d.nodes), d.quorum, errors.Join(errs...))}
}

// Traits describes the engine. The caller may change the result.
func (d *Driver) Traits() driver.Traits {
	t := traits
	t.Kinds, t.Unsupported = slices.Clone(t.Kinds), slices.Clone(t.Unsupported)
	return t
}

// Close ends all waits with driver.ErrClosed and gives the connections back. It blocks until its goroutines have ended.
// Holds are not released: they end with their leases, on each node.
func (d *Driver) Close() error {
	d.mu.Lock()
	d.closed = true
	clear(d.current)
	d.mu.Unlock()
	d.stop()
	var mu sync.Mutex
	var errs []error
	var all sync.WaitGroup
	for _, n := range d.nodes {
		all.Go(func() {
			if err := n.close(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	// After the nodes: what runs may wait for an answer of theirs.
	d.tasks.Wait()
	return errors.Join(errs...)
}

// spawn runs f in a goroutine that Close waits for, so f must end soon after d.base has. If d is closed it returns
// false and does not run f.
func (d *Driver) spawn(f func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.tasks.Go(f)
	return true
}

// measured records how long a majority has taken to answer. The newest counts an eighth.
func (d *Driver) measured(t time.Duration) {
	old := d.trip.Load()
	if old == 0 {
		old = int64(t)
	}
	d.trip.Store(old + (int64(t)-old)/8) // of two at the same instant one is lost, which does no harm
}

// grace is how long nodes that are not late as a rule are waited for when a majority has answered: asking once more, as
// is necessary without them, would cost about as much. A node that lets the grace pass is not waited for until it
// answers again.
func (d *Driver) grace() time.Duration {
	return min(max(2*time.Duration(d.trip.Load()), 500*time.Microsecond), 10*time.Millisecond)
}
