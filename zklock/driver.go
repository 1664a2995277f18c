// The Driver: construction, traits, Close, and the wait for a usable connection. session.go keeps the session;
// acquire.go begins the walk of a request.
//
// There are two kinds of goroutines. The keeper keeps the session and lives as long as the driver; goroutines of spawn
// make one request each, because the library knows no contexts. Close ends the keeper first, which ends the session,
// and with it every request that is under way, so the wait for the others is short.

package zklock

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Requeuer  = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// kinds are those that Acquire accepts.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindElection}

// Driver is one client's access to the locks of a ZooKeeper ensemble. It has one session at a time, whose end ends its
// holds; then it makes another, and can be used as before. It is safe for concurrent use and must not be copied. [New]
// and URLs make one.
type Driver struct {
	hosts []string
	opts  Options
	tree  tree
	born  time.Time // monotonic; Confirmed counts from here
	// Together with a count it makes names that are never used twice by anybody, not even after a restart of this
	// process. That is what finds a node again whose reply was lost.
	process string // a word in the names of all nodes of this driver, and of no other's
	// Only thousands of millions of transactions reach the two constants, so tests lower them here.
	spentAt int32 // the constant spent, but in tests
	zxidEnd int64 // the constant lastZxid, but in tests

	life context.Context //nolint:containedctx // ends with Close
	stop context.CancelFunc
	kept chan struct{} // closed when the keeper's goroutine has ended

	// mu guards what follows, and fields elsewhere whose comments say so. Nothing blocks under it, and no code of the
	// user runs under it.
	mu      sync.Mutex
	calls   sync.WaitGroup // goroutines of spawn; Close waits for them
	closed  bool
	timeout time.Duration // of the first session, as negotiated; constant once New has returned
	session *session      // nil before the first
	// stir is closed and replaced whenever a session comes, goes, or changes; see changed.
	stir    chan struct{}
	failure error             // why there is no usable session; nil while there is one
	entries map[string]*entry // by the ID of the request
	gone    tombstones
	last    uint64 // counts the nodes that were made, for their names
	// It is learned from the first refusal and kept: a server that was replaced by a newer one still takes plain nodes.
	plain bool  // the servers know no container nodes
	woken int64 // how often an event woke a waiter; tests read it
}

// New connects to an ensemble and blocks until there is a session. hosts are some or all of its servers, as host:port.
// ctx bounds the start; without a deadline it is ten seconds. A nil opts means the defaults.
func New(ctx context.Context, hosts []string, opts *Options) (*Driver, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		return nil, errors.New("zk: there is no server to connect to")
	}
	if slices.Contains(hosts, "") {
		return nil, errors.New("zk: a host is empty; write for instance localhost:2181")
	}
	d := &Driver{
		hosts: slices.Clone(hosts), opts: o, tree: tree{o.Root}, born: time.Now(),
		process: strings.ToLower(rand.Text()[:16]), spentAt: spent, zxidEnd: lastZxid,
		kept: make(chan struct{}), stir: make(chan struct{}),
		entries: make(map[string]*entry),
	}
	// The driver outlives ctx, which bounds the start alone.
	d.life, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	go d.keep() // ends with Close, which waits for it
	bounded, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if _, err := d.ready(bounded, nil, openTimeout, true); err != nil {
		err = d.whyNot(ctx, err) // before Close, which fails what is under way
		enginekit.CloseWithin(ctx, d.Close)
		return nil, err
	}
	return d, nil
}

// openTimeout bounds New when ctx has no deadline, or a later one. An ensemble that is electing its leader needs a
// second or two of it, and the rest is for servers of the list that are silent.
const openTimeout = 10 * time.Second

// whyNot is the error of a New that had no session when its time was over: the server's own words, if there are any.
func (d *Driver) whyNot(ctx context.Context, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	why := d.failure
	if why == nil && d.session != nil {
		why = d.session.line.failure()
	}
	// That a server has hung up says less than the error of the attempt.
	if why == nil || errors.Is(why, errHungUp) {
		why = err
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), why)
	}
	return why
}

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "zookeeper", Lifetime: driver.Sessions, Timeout: d.timeout, Resumes: true, Kinds: slices.Clone(kinds),
		Unsupported: []driver.Unsupported{
			{Ability: driver.NamedOwners, Reason: "a node belongs to one session, so a hold cannot be shared with " +
				"another process"},
			{Ability: driver.Conversion, Reason: "the number of a node is its place in the queue, so an upgrade " +
				"cannot go to the front"},
			{Ability: driver.LockDelays, Reason: "a node is removed with its session, and nothing stays that could " +
				"keep others out"},
			{
				Ability: driver.Ability(driver.KindSemaphore),
				Reason:  "the recipe waits for the nearest node in the way, it does not count",
			},
			{
				Ability: driver.Ability(driver.KindLatch),
				Reason:  "what it keeps belongs to a session, and a latch to nobody",
			},
			{
				Ability: driver.Ability(driver.KindCond),
				Reason:  "a node stands in one queue, and cannot be moved to another in one step",
			},
		},
	}
}

// Close ends all waits with driver.ErrClosed, and the session: the servers free its holds at once, or if they cannot be
// reached, when its timeout is over. It takes up to half a second.
func (d *Driver) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	if first {
		clear(d.entries) // nobody is told anything any more
		d.changed()
	}
	d.mu.Unlock()
	// The keeper ends the session, and the goroutines of requests end with it.
	d.stop()
	<-d.kept
	d.calls.Wait()
	return nil
}

// changed wakes those that wait for a session or a connection. The caller holds Driver.mu. A closed channel wakes all
// of them at once. Each takes the new channel under the mutex together with the state, so no change falls between the
// two.
func (d *Driver) changed() {
	close(d.stir)
	d.stir = make(chan struct{})
}

// fail records why a session is of no use. Operations that do not want to wait return it.
func (d *Driver) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	d.changed()
	d.opts.Logger.Warn("zk: no session", "err", err)
}

// ready returns a connection that can be used. It waits for one until ctx ends or gone is closed, but not longer than
// reach. If fails is set it does not wait any more once a server has refused us. The link may break at any time after
// that; its user comes back for another when a request over it has failed.
func (d *Driver) ready(ctx context.Context, gone <-chan struct{}, reach time.Duration, fails bool) (*link, error) {
	var patience <-chan time.Time
	for {
		d.mu.Lock()
		s, stir, failure := d.session, d.stir, d.failure
		switch {
		case d.closed:
			d.mu.Unlock()
			return nil, driver.ErrClosed
		case s != nil && s.link != nil:
			l := s.link
			d.mu.Unlock()
			return l, nil
		case fails && failure != nil && !isPassing(failure):
			d.mu.Unlock()
			return nil, failure
		}
		d.mu.Unlock()
		if patience == nil { // made late, because there nearly always is a link
			timer := time.NewTimer(reach)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-stir:
		case <-gone:
			return nil, driver.ErrLost
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience:
			return nil, d.outOfReach()
		}
	}
}

// linkOf returns a usable connection of s, and waits for one as long as s lives. It is for what belongs to a hold of s:
// in another session there is nothing of it. It has no time limit of its own: a hold ends with its session at the
// latest, and that closes the wait.
func (d *Driver) linkOf(ctx context.Context, s *session) (*link, error) {
	for {
		d.mu.Lock()
		// State and channel are read in one step, so that a change after the look is not missed.
		l, over, closed, stir := s.link, s.cause != nil, d.closed, d.stir
		d.mu.Unlock()
		switch {
		case closed:
			return nil, driver.ErrClosed
		case over:
			return nil, errOver
		case l != nil:
			return l, nil
		}
		select {
		case <-stir:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reach is how long a request waits for a server to talk to. An ensemble that elects a leader answers nobody for a
// second or two. A request without a node has no place to lose, so its caller is told early.
const reach = 5 * time.Second

// newName returns the beginning of the name of a node. No other request of any driver ever has it, so a request whose
// reply was lost can find its node. The caller holds Driver.mu. The count is written to the base of 36, so that names
// stay short after many requests.
func (d *Driver) newName(m driver.Mode) string {
	d.last++
	return letter(m) + d.process + strconv.FormatUint(d.last, 36) + "-"
}

// isClosed reports whether Close was called.
func (d *Driver) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}
