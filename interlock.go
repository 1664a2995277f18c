package interlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Client takes locks on one engine. One client per process and engine is enough: its goroutines then queue locally and
// share renewals. It is safe for concurrent use. The zero value cannot be used, nor can a copy.
type Client struct {
	_        noCopy
	d        driver.Driver
	traits   driver.Traits
	renewer  driver.Renewer       // nil unless the engine has leases, or sessions and recalls
	requeuer driver.Requeuer      // nil if the engine cannot
	multi    driver.MultiAcquirer // nil if the engine cannot
	convert  driver.Converter     // nil if the engine cannot
	opts     Options
	defaults params    // of a lock without options
	born     time.Time // where instants are counted from
	owned    bool      // Close closes the driver
	id       string    // random; prefix of all request ids
	lastID   atomic.Uint64
	badLabel atomic.Bool // LabelFrom has returned what no label may be
	watching bool        // the engine's holds have a trust window, so suspensions matter
	recalls  bool        // the engine tells a holder that another wants the lock

	base       context.Context //nolint:containedctx // ended by Close once nothing is pending: renewals end with it
	stop       context.CancelFunc
	asks       context.Context //nolint:containedctx // ended when Close begins: waits and questions end with it
	stopAsking context.CancelFunc
	hard       context.Context //nolint:containedctx // ended when Close gives up: releases end with it
	stopHard   context.CancelFunc
	background sync.WaitGroup // every goroutine of the client

	mu       sync.Mutex    // see lock
	deferred deferredCalls // see afterUnlock
	closed   bool
	queues   map[queueKey]*queue
	// by grant.listName, the first of each; all that the engine gave and that is not given back or lost
	grants map[string]*grant
	alone  map[*waiter]struct{} // who waits without standing in a queue
	// what is kept from others for a while, whether held or not; nil until there is any
	cooldowns map[*grant]*cooldown
	failures  map[*grant]error // how the last renewal failed, of those whose did; nil until there is any
	// what was left to run out, by those who will give it back; nil until there is any
	runningOut map[*lateRelease]struct{}

	unconfirmed []error       // what the engine has not confirmed since Close began
	pending     int           // calls of Lease.Pending that are not over
	quiet       chan struct{} // closed when there is none any more; nil unless Close waits for that

	sched       scheduler
	deadlocks   deadlockDetector
	suspensions suspensionWatch
	retention   retention
}

// Open opens the engine that url names and returns a client of it. The scheme picks the engine, whose package must be
// imported for its side effect: mem:// (memlock) and file:// (filelock) come with this module, the others with modules
// of their own; see Engines in the package documentation. ctx bounds the opening. Close also closes the engine's
// connections.
func Open(ctx context.Context, url string, opts *Options) (*Client, error) {
	if ctx == nil {
		return nil, errNilContext
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := driver.DefaultMux.Open(ctx, url, driver.Config{Lease: o.Lease, Client: o.ClientName, Logger: o.Logger})
	if err != nil {
		return nil, fmt.Errorf("interlock: open: %w", err)
	}
	if o.Store == "" {
		o.Store = storeOf(url)
	}
	c, err := New(d, &o)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	c.owned = true
	return c, nil
}

// New returns a client of d. Close leaves d open: whoever opened it closes it.
func New(d driver.Driver, opts *Options) (*Client, error) {
	if d == nil {
		return nil, errors.New("interlock: New: the driver is nil")
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return newClient(d, o, machineSuspended)
}

func newClient(d driver.Driver, o Options, suspended func() time.Duration) (*Client, error) {
	c := &Client{
		d: d, traits: d.Traits(), opts: o, id: rand.Text()[:16],
		defaults: params{
			kind: driver.KindMutex, lease: o.Lease, renewal: o.Renewal, retain: o.Retain, class: otherClass,
			labelFrom: o.LabelFrom,
		},
		born:   time.Now(),
		queues: make(map[queueKey]*queue), grants: make(map[string]*grant), alone: make(map[*waiter]struct{}),
		suspensions: newSuspensionWatch(suspended),
	}
	c.sched.timer, c.sched.armed = time.NewTimer(time.Hour), never // the scheduler sets it anew when it begins
	c.deadlocks.at = never
	c.watching = c.traits.Lifetime != driver.Process
	_, lacks := c.traits.Lacking(driver.Recalls)
	c.recalls = !lacks
	if err := c.mayRetain(); err != nil && o.Retain > 0 {
		return nil, fmt.Errorf("interlock: Options: Retain: %w", err)
	}
	c.requeuer, _ = d.(driver.Requeuer)
	c.multi, _ = d.(driver.MultiAcquirer)
	c.convert, _ = d.(driver.Converter)
	if c.hasLeases() || c.hasSessions() && c.recalls {
		renewer, ok := d.(driver.Renewer)
		if !ok {
			return nil, fmt.Errorf("interlock: New: the driver of %s does not implement driver.Renewer",
				c.traits.Engine)
		}
		c.renewer = renewer
	}
	c.base, c.stop = context.WithCancel(context.Background()) //nolint:forbidigo // lives as long as the client
	c.asks, c.stopAsking = context.WithCancel(c.base)
	c.hard, c.stopHard = context.WithCancel(context.Background()) //nolint:forbidigo // lives as long as the client
	c.background.Go(c.watch)
	return c, nil
}

// Lock waits until the mutex of that name is held; see [Mutex.Lock]. ctx bounds the waiting, nothing else.
func (c *Client) Lock(ctx context.Context, name string) (*Lease, error) {
	return c.Mutex(name, nil).Lock(ctx)
}

// TryLock takes the mutex of that name if it is free; see [Mutex.TryLock].
func (c *Client) TryLock(ctx context.Context, name string) (*Lease, error) {
	return c.Mutex(name, nil).TryLock(ctx)
}

// Do calls fn while it holds the mutex of that name; see [Mutex.Do].
func (c *Client) Do(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	return c.Mutex(name, nil).Do(ctx, fn)
}

// spawn runs f in a goroutine that Close waits for, unless the client is closed.
func (c *Client) spawn(f func()) bool {
	c.lock()
	defer c.unlock()
	if c.closed {
		return false
	}
	c.background.Go(f)
	return true
}

// Close ends the client. Calls that wait or ask the engine return ErrClosed, everything held is released (its leases
// then say ErrReleased), and no goroutine is left. It waits for the engine's confirmations at most Options.CloseTimeout
// and returns nil, or what could not be confirmed by then: that ends with its lease. A second Close does nothing.
//
// What has a [LockOptions] MinHold that is not over stays closed for the rest, and what was abandoned ([Lease.Abandon])
// for its lease. Where the engine cannot do that by itself, one goroutine and the engine's connections outlive Close
// until then. Where a COMMIT is under way (see [Lease.Pending]) Close waits for its end, for half of CloseTimeout;
// after that the lock is not released either but runs out.
func (c *Client) Close() error {
	if err := c.made(); err != nil {
		return err
	}
	c.lock()
	if c.closed {
		c.unlock()
		return nil
	}
	timer := time.AfterFunc(c.opts.CloseTimeout, c.stopHard)
	defer timer.Stop()
	c.closed = true
	c.endWaits()
	c.stopAsking()
	c.awaitPending(c.opts.CloseTimeout / 2)
	c.leavePending()
	later := c.takeLater()
	releases := c.dropAll()
	c.unlock()
	c.stop()

	c.releaseAll(releases)
	c.background.Wait() // also for what was to be given back before Close
	c.stopHard()
	c.lock()
	err := errors.Join(c.unconfirmed...)
	c.unlock()
	switch {
	case len(later) > 0:
		go c.releaseLater(later) // ends when the last of them is over
	case c.owned:
		err = errors.Join(err, c.d.Close())
	}
	return err
}

// endWaits answers every waiting call with ErrClosed. The caller holds Client.mu.
func (c *Client) endWaits() {
	for _, q := range c.queues {
		q.fail(wrap("lock", q.m.key(), ErrClosed))
	}
	for w := range c.alone {
		w.leave()
		w.answer(wrap("lock", w.lease.m.key(), ErrClosed))
	}
}

// dropAll ends every hold and returns what is to be released at once. The caller holds Client.mu.
func (c *Client) dropAll() (releases []lateRelease) {
	for len(c.grants) > 0 { // dropping takes them out
		for _, g := range c.grants {
			if g.phase != abandoned { // else the engine's lease ends it
				r := g.release()
				r.Keep = g.keep()
				releases = append(releases, lateRelease{m: g.m, r: r})
			}
			c.dropGrant(g)
		}
	}
	return releases
}

// dropGrant ends g and its holds as released. The caller holds Client.mu.
func (c *Client) dropGrant(g *grant) {
	for l := range g.holds.all(ofGrant) {
		l.release(c.now())
		if l.inner {
			continue
		}
		c.afterUnlock(func() { l.owner.remove(l); l.tellReleased(nil) })
	}
	g.drop()
}

// closers is how many releases Close has under way at once: enough to fill a connection, too few to burden anything.
const closers = 64

// releaseAll gives everything back.
func (c *Client) releaseAll(releases []lateRelease) {
	work := make(chan lateRelease, len(releases))
	for _, r := range releases {
		work <- r
	}
	close(work)
	var all sync.WaitGroup
	for range min(closers, len(releases)) {
		all.Go(func() {
			for r := range work {
				_, _ = c.settleNow(r.m, r.r) // which notes what is not confirmed
			}
		})
	}
	all.Wait()
}
