package shell

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

// otherClass is the class of locks that have none.
const otherClass = "other"

// Public is a client as its user has it in hand. The package above gives it its methods, by a conversion of the
// pointer.
type Public struct {
	_      core.NoCopy
	client Client
}

// Client returns the client, and nil of a nil Public.
func (p *Public) Client() *Client {
	if p == nil {
		return nil
	}
	return &p.client
}

// Public returns what the user of c has in hand, and nil of a nil Client.
func (c *Client) Public() *Public {
	if c == nil {
		return nil
	}
	return c.public
}

// Client is what stands around the state machine: it asks the engine, waits, renews, releases, and tells users.
type Client struct {
	public *Public // of which it is
	core.Machine
	// Set by New and constant from then on, down to recalls; the atomics guard themselves.
	Driver   driver.Driver
	renewer  driver.Renewer       // nil unless holds have leases, or sessions and the engine tells of recalls
	requeuer driver.Requeuer      // nil if the engine cannot requeue
	Bundler  driver.MultiAcquirer // nil if the engine cannot take several locks in one step
	Convert  driver.Converter     // nil if the engine cannot convert
	Config   Config
	Owned    bool   // Open made it, so Close closes the driver
	ID       string // random; the prefix of all request ids
	lastID   atomic.Uint64
	badLabel atomic.Bool // LabelFrom has returned an invalid label; later ones are logged at Debug

	renewCtx     context.Context //nolint:containedctx // ended by Close once nothing is pending: renewals end with it
	stopRenewals context.CancelFunc
	WaitsCtx     context.Context //nolint:containedctx // ended when Close begins: waits and questions end with it
	stopWaits    context.CancelFunc
	releaseCtx   context.Context //nolint:containedctx // ended when Close gives up: releases end with it
	stopReleases context.CancelFunc

	unconfirmed []error       // releases that were given up since Close began: its error
	Pending     int           // calls of Lease.Pending that are not over
	PendingDone chan struct{} // closed when pending becomes 0; nil unless Close waits for that

	Deadlocks deadlockDetector
}

// NewClient is New with checked options. suspended is machineSuspended, except in tests.
func NewClient(d driver.Driver, o Config, suspended func() time.Duration) (*Client, error) {
	p := &Public{client: Client{
		Driver: d, Config: o, ID: rand.Text()[:16],
		Machine: core.Machine{
			Traits: d.Traits(),
			Defaults: core.Terms{
				Terms: grants.Terms{Lease: o.Lease, Renewal: o.Renewal, Retain: o.Retain},
				Kind:  driver.KindMutex, Class: otherClass, LabelFrom: o.LabelFrom,
			},
			Lines: make(
				map[core.LineKey]*core.Line,
			),
			EngineHolds: make(map[string]*core.EngineHold),
			LinesOfOne:  make(map[*core.Waiter]struct{}),
			Env: grants.Env{
				Lifetime: d.Traits().Lifetime, LocalHandoffs: o.LocalHandoffs, LocalHandoffTime: o.LocalHandoffTime,
				Clock: trust.NewClock(), Suspensions: trust.NewSuspensions(suspended),
			},
		},
	}}
	c := &p.client
	c.public = p
	c.Shell, c.Store, c.Hears = shell{c}, o.Store, o.Observer.Acquired != nil
	// The scheduler sets the timer when its goroutine begins.
	c.Scheduler.Timer, c.Scheduler.Armed = time.NewTimer(time.Hour), trust.Never
	c.Deadlocks.At = trust.Never
	c.Watching = c.Traits.Lifetime != driver.Process
	_, lacks := c.Traits.Lacking(driver.Recalls)
	c.Recalls = !lacks
	if err := c.MayRetain(); err != nil && o.Retain > 0 {
		return nil, fmt.Errorf("interlock: Options: Retain: %w", err)
	}
	c.requeuer, _ = d.(driver.Requeuer)
	c.Bundler, _ = d.(driver.MultiAcquirer)
	c.Convert, _ = d.(driver.Converter)
	c.Requeues, c.Converts = c.requeuer != nil, c.Convert != nil
	if c.HasLeases() || c.HasSessions() && c.Recalls {
		renewer, ok := d.(driver.Renewer)
		if !ok {
			return nil, fmt.Errorf("interlock: New: the driver of %s does not implement driver.Renewer",
				c.Traits.Engine)
		}
		c.renewer, c.Renews = renewer, true
	}
	// Close ends these three at different moments: asks when it begins, base when everything held has been dropped,
	// hard when it gives up waiting for releases.
	c.renewCtx, c.stopRenewals = context.WithCancel(
		context.Background(),
	) //nolint:forbidigo // lives as long as the client
	c.WaitsCtx, c.stopWaits = context.WithCancel(c.renewCtx)
	c.releaseCtx, c.stopReleases = context.WithCancel(
		context.Background(),
	) //nolint:forbidigo // lives as long as the client
	c.Background.Go(c.watch)
	c.heedReconnections()
	return c, nil
}

// spawn runs f in a goroutine that Close waits for. It returns false, and runs nothing, if the client is closed.
func (c *Client) spawn(f func()) bool {
	c.Lock()
	defer c.Unlock()
	if c.Closed {
		return false
	}
	c.Background.Go(f)
	return true
}

// Close is Client.Close.
func (c *Client) Close() error {
	c.Lock()
	if c.Closed {
		c.Unlock()
		return nil
	}
	// Waits end first: their callers return at once, however long the rest takes. Renewals go on while a COMMIT is
	// pending. takeLater comes before dropAll, which would end its holds too. Everything held is dropped under one
	// Machine.Mu, so that nothing passes on in between. Then the renewals end, and the releases begin.
	timer := time.AfterFunc(c.Config.CloseTimeout, c.stopReleases)
	defer timer.Stop()
	c.Closed = true
	c.endWaits()
	c.stopWaits()
	c.awaitPending(c.Config.CloseTimeout / 2)
	c.leavePending()
	later := c.takeLater()
	releases := c.dropAll()
	c.Unlock()
	c.stopRenewals()

	c.releaseAll(releases)
	c.Background.Wait() // also for what was being released before Close
	c.stopReleases()
	c.Lock()
	err := errors.Join(c.unconfirmed...)
	c.Unlock()
	switch {
	// The driver must stay open for them, so releaseLater closes it.
	case len(later) > 0:
		go c.releaseLater(later) // ends when the last of them is over
	case c.Owned:
		err = errors.Join(err, c.Driver.Close())
	}
	return err
}

// endWaits answers every waiting call with ErrClosed. The caller holds Machine.Mu.
func (c *Client) endWaits() {
	for _, q := range c.Lines {
		q.Fail(Wrap("lock", q.Lock.Key(), driver.ErrClosed))
	}
	for w := range c.LinesOfOne {
		w.Withdraw()
		w.Answer(Wrap("lock", w.Hold.Lock.Key(), driver.ErrClosed))
	}
}

// dropAll ends every hold and returns what must be released at once. The caller holds Machine.Mu.
func (c *Client) dropAll() (releases []core.LateRelease) {
	for len(c.EngineHolds) > 0 { // dropGrant takes them out
		for _, g := range c.EngineHolds {
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
	for l := range g.All() {
		l.Release(c.Now())
		c.AfterUnlock(func() { l.Owner.Remove(l); TellReleased(l, nil) })
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
				_, _ = c.SettleNow(r.Lock, r.Release) // unsettled notes what is not confirmed
			}
		})
	}
	all.Wait()
}

// shell is a client as its core sees it. It has the methods that the core calls, so that users of a Client do not.
// All are called under Machine.Mu.
type shell struct{ c *Client }

var _ core.Shell = shell{}

func (s shell) NewRequest(w *core.Waiter, try bool) *core.Request { return s.c.newRequest(w, try) }
func (s shell) NewID() string                                     { return s.c.NewID() }
func (s shell) SuspectDeadlock(o *core.Owner)                     { s.c.suspectDeadlock(o) }
func (s shell) Arm(at trust.Instant)                              { s.c.arm(at) }
func (s shell) Lost(h *core.Hold, lost *driver.LostError)         { s.c.lost(h, lost) }
func (s shell) Adopted(h *core.Hold)                              { tellAdopted(h) }
func (s shell) Retained(g *core.EngineHold) core.News             { return TellRetained(g) }
func (s shell) LeftPending(g *core.EngineHold)                    { s.c.leftPending(g) }

func (s shell) RenewalConfirmed(g *core.EngineHold, left, lease time.Duration) {
	s.c.renewalConfirmed(g, left, lease)
}

func (s shell) RenewalFailed(g *core.EngineHold, left time.Duration, again bool, err error) {
	s.c.renewalFailed(g, left, again, err)
}

// awaitPending waits, in Close, until nothing is pending any more, or for most. The caller holds Machine.Mu, which is
// given up meanwhile: renewals go on, and over needs it.
func (c *Client) awaitPending(most time.Duration) {
	if c.Pending == 0 {
		return
	}
	quiet, limit := make(chan struct{}), time.NewTimer(most)
	defer limit.Stop()
	c.PendingDone = quiet
	c.Unlock()
	select {
	case <-quiet:
	case <-limit.C:
	}
	c.Lock()
}

// leavePending marks what is still pending, so that Close leaves it to run out. Where nothing runs out by itself,
// releaseLater keeps it for a lease. The caller holds Machine.Mu.
func (c *Client) leavePending() {
	if c.Pending == 0 {
		return
	}
	for _, g := range c.EngineHolds {
		for ; g != nil; g = g.After {
			if g.IsPending() {
				g.LeaveAtClose()
			}
		}
	}
}

// leftPending logs that. The caller holds Machine.Mu.
func (c *Client) leftPending(g *core.EngineHold) {
	c.AfterUnlock(func() {
		c.Config.Logger.Warn("interlock: closed while something was pending: lock left to run out",
			"lock", g.Lock.Key().Name, "engine", c.Traits.Engine, "token", g.Token)
	})
}

// CheckOpen returns ErrClosed once Close has begun.
func (c *Client) CheckOpen() error {
	c.Lock()
	defer c.Unlock()
	if c.Closed {
		return fmt.Errorf("interlock: %w", driver.ErrClosed)
	}
	return nil
}

// CoreOf returns the core, and nil of a nil Client.
func (c *Client) CoreOf() *core.Machine {
	if c == nil {
		return nil
	}
	return &c.Machine
}

// clientAround returns the client whose core c is.
func clientAround(c *core.Machine) *Client {
	own, _ := c.Shell.(shell)
	return own.c
}

// ClientOf returns the client of which m is a lock; nil if nobody has made m.
func ClientOf(m *core.Lock) *Client {
	if m.Core == nil {
		return nil
	}
	return clientAround(m.Core)
}
