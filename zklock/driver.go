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

var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindElection}

// Driver is one client's access to the locks of a ZooKeeper ensemble. It has one session at a time, whose end ends its
// holds; it then makes another, and can be used as before. It is safe for concurrent use and must not be copied.
type Driver struct {
	hosts   []string
	opts    Options
	tree    tree
	born    time.Time
	process string // part of the names of all nodes of this driver, and of no other's
	spentAt int32  // see spent
	zxidEnd int64  // see lastZxid

	life context.Context //nolint:containedctx // ends with Close
	stop context.CancelFunc
	kept chan struct{} // closed when the keeper has ended

	mu      sync.Mutex // guards what follows, and what says so elsewhere; nothing blocks under it
	calls   sync.WaitGroup
	closed  bool
	timeout time.Duration // of the first session, as negotiated; constant when New has returned
	session *session      // nil before the first
	stir    chan struct{} // closed and replaced whenever a session comes, goes, or changes; see changed
	failure error         // why there is no session
	entries map[string]*entry
	gone    tombstones
	last    uint64 // counts the nodes that were made
	plain   bool   // the servers know no container nodes
	woken   int64  // how often a waiter was woken by a node
}

// New connects to an ensemble, of which hosts are some or all servers as host:port, and returns when there is a
// session. ctx bounds that; without a deadline it is ten seconds. A nil opts means the defaults.
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

// openTimeout bounds New.
const openTimeout = 10 * time.Second

// whyNot is the error of a New that had no session when its time was over.
func (d *Driver) whyNot(ctx context.Context, err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	why := d.failure
	if why == nil && d.session != nil {
		why = d.session.line.failure()
	}
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
// reached when its timeout is over. It takes up to half a second.
func (d *Driver) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	if first {
		clear(d.entries) // nobody is told anything any more
		d.changed()
	}
	d.mu.Unlock()
	d.stop()
	<-d.kept
	d.calls.Wait()
	return nil
}

// changed wakes those who wait for a session. The caller holds Driver.mu.
func (d *Driver) changed() {
	close(d.stir)
	d.stir = make(chan struct{})
}

// fail takes in why a session is of no use.
func (d *Driver) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = err
	d.changed()
	d.opts.Logger.Warn("zk: no session", "err", err)
}

// ready returns a connection that can be used. It waits for one until ctx ends or gone is closed, but not for longer
// than reach, and if fails is set not after a server has refused us.
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
		case fails && failure != nil:
			d.mu.Unlock()
			return nil, failure
		}
		d.mu.Unlock()
		if patience == nil {
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
			return nil, noServer{d.outOfReach()}
		}
	}
}

// linkOf returns a connection of s that can be used, and waits for one as long as s lives.
func (d *Driver) linkOf(ctx context.Context, s *session) (*link, error) {
	for {
		d.mu.Lock()
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

// reach is how long a request waits for a server to talk to: an ensemble that elects a leader answers nobody for a
// second or two.
const reach = 5 * time.Second

func (d *Driver) outOfReach() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.failure
	if err == nil && d.session != nil {
		err = d.session.line.failure()
	}
	if err == nil {
		err = errors.New("zk: no server answers")
	}
	return unreached{err}
}

// newName returns the beginning of the name of a node that nobody else makes. The caller holds Driver.mu.
func (d *Driver) newName(m driver.Mode) string {
	d.last++
	return letter(m) + d.process + strconv.FormatUint(d.last, 36) + "-"
}
