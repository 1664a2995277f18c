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
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// checkOpen returns ErrClosed once Close has begun.
func (c *Client) checkOpen() error {
	c.lock()
	defer c.unlock()
	if c.core.Closed {
		return fmt.Errorf("interlock: %w", ErrClosed)
	}
	return nil
}

// coreOf returns the core, and nil of a nil Client.
func (c *Client) coreOf() *core.Machine {
	if c == nil {
		return nil
	}
	return &c.core
}

// clientOf returns the client whose core c is.
func clientOf(c *core.Machine) *Client {
	own, _ := c.Shell.(shell)
	return own.c
}

// clientOfLock returns the client of which m is a lock; nil if nobody has made m.
func clientOfLock(m *core.Lock) *Client {
	if m.Core == nil {
		return nil
	}
	return clientOf(m.Core)
}

// otherClass is the class of locks that have none.
const otherClass = "other"

// Client takes locks on one engine. One client per process and engine is enough: its goroutines then queue locally and
// share renewals. It is safe for concurrent use. The zero value cannot be used, nor can a copy.
//
// A client has one goroutine while nothing is under way; locks that are held have none.
type Client struct {
	_    core.NoCopy
	core core.Machine
	// Set by New and constant from then on, down to recalls; the atomics guard themselves.
	d        driver.Driver
	renewer  driver.Renewer       // nil unless holds have leases, or sessions and the engine tells of recalls
	requeuer driver.Requeuer      // nil if the engine cannot requeue
	multi    driver.MultiAcquirer // nil if the engine cannot take several locks in one step
	convert  driver.Converter     // nil if the engine cannot convert
	opts     config
	owned    bool   // Open made it, so Close closes the driver
	id       string // random; the prefix of all request ids
	lastID   atomic.Uint64
	badLabel atomic.Bool // LabelFrom has returned an invalid label; later ones are logged at Debug

	base       context.Context //nolint:containedctx // ended by Close once nothing is pending: renewals end with it
	stop       context.CancelFunc
	asks       context.Context //nolint:containedctx // ended when Close begins: waits and questions end with it
	stopAsking context.CancelFunc
	hard       context.Context //nolint:containedctx // ended when Close gives up: releases end with it
	stopHard   context.CancelFunc

	unconfirmed []error       // releases that were given up since Close began: its error
	pending     int           // calls of Lease.Pending that are not over
	quiet       chan struct{} // closed when pending becomes 0; nil unless Close waits for that

	deadlocks deadlockDetector
}

// newClient is New with checked options. suspended is machineSuspended, except in tests.
func newClient(d driver.Driver, o config, suspended func() time.Duration) (*Client, error) {
	c := &Client{
		d: d, opts: o, id: rand.Text()[:16],
		core: core.Machine{
			Traits: d.Traits(),
			Defaults: core.Terms{
				Terms: grants.Terms{Lease: o.Lease, Renewal: o.Renewal, Retain: o.Retain},
				Kind:  driver.KindMutex, Class: otherClass, LabelFrom: o.LabelFrom,
			},
			Lines: make(map[core.LineKey]*core.Line), EngineHolds: make(map[string]*core.EngineHold), LinesOfOne: make(map[*core.Waiter]struct{}),
			Env: grants.Env{
				Lifetime: d.Traits().Lifetime, LocalHandoffs: o.LocalHandoffs, LocalHandoffTime: o.LocalHandoffTime,
				Clock: trust.NewClock(), Suspensions: trust.NewSuspensions(suspended),
			},
		},
	}
	c.core.Shell, c.core.Store, c.core.Hears = shell{c}, o.Store, o.Observer.Acquired != nil
	// The scheduler sets the timer when its goroutine begins.
	c.core.Scheduler.Timer, c.core.Scheduler.Armed = time.NewTimer(time.Hour), trust.Never
	c.deadlocks.at = trust.Never
	c.core.Watching = c.core.Traits.Lifetime != driver.Process
	_, lacks := c.core.Traits.Lacking(driver.Recalls)
	c.core.Recalls = !lacks
	if err := c.core.MayRetain(); err != nil && o.Retain > 0 {
		return nil, fmt.Errorf("interlock: Options: Retain: %w", err)
	}
	c.requeuer, _ = d.(driver.Requeuer)
	c.multi, _ = d.(driver.MultiAcquirer)
	c.convert, _ = d.(driver.Converter)
	c.core.Requeues, c.core.Converts = c.requeuer != nil, c.convert != nil
	if c.core.HasLeases() || c.core.HasSessions() && c.core.Recalls {
		renewer, ok := d.(driver.Renewer)
		if !ok {
			return nil, fmt.Errorf("interlock: New: the driver of %s does not implement driver.Renewer",
				c.core.Traits.Engine)
		}
		c.renewer, c.core.Renews = renewer, true
	}
	// Close ends these three at different moments: asks when it begins, base when everything held has been dropped,
	// hard when it gives up waiting for releases.
	c.base, c.stop = context.WithCancel(context.Background()) //nolint:forbidigo // lives as long as the client
	c.asks, c.stopAsking = context.WithCancel(c.base)
	c.hard, c.stopHard = context.WithCancel(context.Background()) //nolint:forbidigo // lives as long as the client
	c.core.Background.Go(c.watch)
	c.heedReconnections()
	return c, nil
}

// spawn runs f in a goroutine that Close waits for. It returns false, and runs nothing, if the client is closed.
func (c *Client) spawn(f func()) bool {
	c.lock()
	defer c.unlock()
	if c.core.Closed {
		return false
	}
	c.core.Background.Go(f)
	return true
}

// close is Client.Close.
func (c *Client) close() error {
	c.lock()
	if c.core.Closed {
		c.unlock()
		return nil
	}
	// Waits end first: their callers return at once, however long the rest takes. Renewals go on while a COMMIT is
	// pending. takeLater comes before dropAll, which would end its holds too. Everything held is dropped under one
	// Machine.Mu, so that nothing passes on in between. Then the renewals end, and the releases begin.
	timer := time.AfterFunc(c.opts.CloseTimeout, c.stopHard)
	defer timer.Stop()
	c.core.Closed = true
	c.endWaits()
	c.stopAsking()
	c.awaitPending(c.opts.CloseTimeout / 2)
	c.leavePending()
	later := c.takeLater()
	releases := c.dropAll()
	c.unlock()
	c.stop()

	c.releaseAll(releases)
	c.core.Background.Wait() // also for what was being released before Close
	c.stopHard()
	c.lock()
	err := errors.Join(c.unconfirmed...)
	c.unlock()
	switch {
	// The driver must stay open for them, so releaseLater closes it.
	case len(later) > 0:
		go c.releaseLater(later) // ends when the last of them is over
	case c.owned:
		err = errors.Join(err, c.d.Close())
	}
	return err
}

// endWaits answers every waiting call with ErrClosed. The caller holds Machine.Mu.
func (c *Client) endWaits() {
	for _, q := range c.core.Lines {
		q.Fail(wrap("lock", q.Lock.Key(), ErrClosed))
	}
	for w := range c.core.LinesOfOne {
		w.Withdraw()
		w.Answer(wrap("lock", w.Hold.Lock.Key(), ErrClosed))
	}
}

// dropAll ends every hold and returns what must be released at once. The caller holds Machine.Mu.
func (c *Client) dropAll() (releases []core.LateRelease) {
	for len(c.core.EngineHolds) > 0 { // dropGrant takes them out
		for _, g := range c.core.EngineHolds {
			if g.Phase != grants.Abandoned {
				r := g.ReleaseRequest()
				r.Keep = g.EngineCooldown()
				releases = append(releases, core.LateRelease{Lock: g.Lock, Release: r})
			} else { // it is ended by the engine's lease
				g.RenewLast()
			}
			c.dropGrant(g)
		}
	}
	return releases
}

// dropGrant ends g and its holds as released, and sends nothing. The caller holds Machine.Mu.
func (c *Client) dropGrant(g *core.EngineHold) {
	for l := range g.Holds.All(core.OfGrant) {
		l.Release(c.core.Now())
		if l.Inner { // it is a part of the hold that is upgraded, of which the Observer is told
			continue
		}
		c.core.AfterUnlock(func() { l.Owner.Remove(l); tellReleased(l, nil) })
	}
	g.Forget()
}

// closers is how many releases Close has under way at once: enough to fill a connection, few enough not to burden the
// engine.
const closers = 64

// releaseAll releases everything, closers at a time, and returns when each is confirmed or given up.
func (c *Client) releaseAll(releases []core.LateRelease) {
	work := make(chan core.LateRelease, len(releases))
	for _, r := range releases {
		work <- r
	}
	close(work)
	var all sync.WaitGroup
	for range min(closers, len(releases)) {
		all.Go(func() {
			for r := range work {
				_, _ = c.settleNow(r.Lock, r.Release) // unsettled notes what is not confirmed
			}
		})
	}
	all.Wait()
}
