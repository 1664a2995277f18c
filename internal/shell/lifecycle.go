package shell

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/trust"
)

// NewClient is New with checked options. suspended is MachineSuspended, except in tests.
func NewClient(d driver.Driver, o Config, suspended func() time.Duration) (*Client, error) {
	p := &Public{client: Client{
		Driver: d, Config: o, ID: rand.Text()[:16],
		Machine: core.Machine{
			Traits: d.Traits(),
			Defaults: core.Terms{
				Terms: grants.Terms{Lease: o.Lease, Renewal: o.Renewal, Retain: o.Retain},
				Kind:  driver.KindMutex, Class: otherClass, LabelFrom: o.LabelFrom,
			},
			Lines:       make(map[core.LineKey]*core.Line),
			EngineHolds: make(map[string]*core.EngineHold),
			LinesOfOne:  make(map[*core.Waiter]struct{}),
			Env: grants.Env{
				Lifetime: d.Traits().Lifetime, LocalHandoffs: o.LocalHandoffs, LocalHandoffTime: o.LocalHandoffTime,
				Clock: trust.NewClock(), Suspensions: trust.NewSuspensions(suspended),
			},
		},
	}}
	c := &p.client
	c.public, c.work = p, work{c}
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
	// Close ends these three at different moments: the waits when it begins, the renewals when everything held has been
	// dropped, the releases when it gives up waiting for them.
	forever := context.Background() //nolint:forbidigo // a client lives on its own
	c.renewCtx, c.stopRenewals = context.WithCancel(forever)
	c.WaitsCtx, c.stopWaits = context.WithCancel(c.renewCtx)
	c.releaseCtx, c.stopReleases = context.WithCancel(forever)
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

func (s shell) NewRequest(w *core.Waiter, try bool) *core.Request { return s.c.newRequest(w, try) }

func (s shell) NewID() string { return s.c.NewID() }

func (s shell) SuspectDeadlock(o *core.Owner) { s.c.suspectDeadlock(o) }

func (s shell) Arm(at trust.Instant) { s.c.arm(at) }

func (s shell) Lost(h *core.Hold, lost *driver.LostError) { s.c.lost(h, lost) }

func (s shell) Adopted(h *core.Hold) { tellAdopted(h) }

func (s shell) Retained(g *core.EngineHold) core.News { return TellRetained(g) }

func (s shell) LeftPending(g *core.EngineHold) { s.c.leftPending(g) }

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

// work is the worker of a client.
type work struct{ c *Client }

// run does one effect that blocks.
func (w work) run(e *core.Effect) {
	c := w.c
	switch e.Verb {
	case core.SendRelease:
		_, _ = c.SettleNow(e.Lock, e.Give)
		if e.Done != nil {
			close(e.Done)
		}
	case core.SendRequest:
		runRequest(e.Request)
	case core.SendRenewals:
		c.renewBatch(e.Batch)
	case core.SendLastRenewal:
		c.renewToRunOut(e.Batch, e.After)
	case core.RenewForHandoff:
		renewAndHandOff(e.Engine)
	case core.FinishRelease:
		_ = confirm(c.releaseCtx, e.Left, UnlockGrace)
	case core.ReleaseAfter:
		c.releaseWhenDue(e.Late, e.After)
	}
}

// disown gives back h.
func (w work) disown(ctx context.Context, h *core.Hold) {
	disownHold(h)
	_ = UnlockInTime(ctx, h)
}
