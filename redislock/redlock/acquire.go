// Acquire: rounds, one after the other, until one has a majority. claim.go has the round's parts and asks the nodes,
// round.go runs a round, judge.go says how it ends, votes.go counts.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/word"
)

const (
	// The bounds of a round's patience with votes that are no majority. The longest is well below the 2 s after which a
	// node takes back a vote that it has pushed.
	shortestPatience = 4 * time.Millisecond
	longestPatience  = 400 * time.Millisecond

	// mostTries is how many rounds a try makes at most, when others try at the same time and none gets a majority.
	mostTries = 8

	// mostSlow is how many rounds that took too long make an acquisition fail.
	mostSlow = 3

	// heartbeatEvery is the longest pause between two heartbeats of a wait at a node; see redislock.
	heartbeatEvery = time.Second
)

var (
	// errSplit ends a round in which nobody has a majority. It is never returned to a caller: another round follows.
	errSplit = errors.New("the votes are split")
	// errSlow ends a round whose majority was so late that nothing of the lease is left.
	errSlow = errors.New("a majority has voted, but only when the lease was over")
)

// Acquire asks all nodes at once, and returns as soon as a majority has granted. It costs one round trip if all have
// granted, and two if not. A node that is in use puts the request into its queue and pushes its vote when it is the
// request's turn there; Acquire blocks until then, or until ctx ends.
//
// If too few nodes answer, the error matches driver.ErrUnavailable and never says that the lock is held. After an error
// that is not definite the caller must undo the request with Release.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	if err := d.check(r); err != nil {
		return driver.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	c, fresh, err := d.enter(r)
	if err != nil {
		return driver.Grant{}, err
	}
	// The claim is known: either an Acquire of it was ended by its context and goes on here, or this is a copy.
	if !fresh && !c.resume(r) {
		return c.again(ctx, r)
	}
	g, err := c.acquire(ctx, fresh)
	c.mu.Lock()
	c.busy = false
	c.mu.Unlock()
	if driver.IsDefinite(err) { // nothing of it is left on any node
		d.forget(c)
	}
	return g, err
}

// check refuses what can never be granted, beyond what each node refuses by itself.
func (d *Driver) check(r *driver.Request) error {
	switch {
	case !slices.Contains(traits.Kinds, r.Kind):
		return fmt.Errorf("redlock: locks of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case r.Named:
		return lacks("named owners", driver.NamedOwners)
	case r.LockDelay > 0:
		return lacks("a delay after a loss", driver.LockDelays)
	case r.Limit != 0 && r.Mode != driver.Exclusive:
		return lacks("a limit", driver.Ability(driver.KindSemaphore))
	// The longest lease is how long a node rests after a restart, so a longer one could outlive that rest.
	case r.Lease > d.opts.LongestLease:
		return fmt.Errorf("redlock: a lease of %v is longer than the longest, %v; set LongestLease (longest-lease in "+
			"the URL) in all clients: %w", r.Lease, d.opts.LongestLease, driver.ErrUnsupported)
	case !word.Is(r.ID):
		return fmt.Errorf("redlock: a request whose ID is empty or has spaces or control characters: %w",
			driver.ErrUnsupported)
	}
	return nil
}

// lacks is the error for a request that needs an ability which this engine does not have.
func lacks(what string, a driver.Ability) error {
	reason, _ := traits.Lacking(a)
	return fmt.Errorf("redlock: %s: %s: %w", what, reason, driver.ErrUnsupported)
}

// enter returns the claim of a request, and whether it is new. A new one is busy at once, so that a copy of the request
// does not take it for one that was left.
func (d *Driver) enter(r *driver.Request) (c *claim, fresh bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, false, driver.ErrClosed
	}
	at := requestKey{r.Key, r.ID}
	// A copy of a request that is under way shares its claim: both get the same answer.
	if c := d.current[at]; c != nil {
		return c, false, nil
	}
	c = &claim{d: d, r: *r, lease: r.Lease, busy: true, waits: r.Waiting, loss: r.Lost}
	d.current[at] = c
	return c, true, nil
}

// forget removes a claim of which nothing is left on any node.
func (d *Driver) forget(c *claim) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := (requestKey{c.r.Key, c.r.ID}); d.current[at] == c {
		delete(d.current, at)
	}
}

// resume makes r go on where an earlier Acquire of the same request was ended by its context. It reports false if there
// is nothing to go on with: r is then a copy.
func (c *claim) resume(r *driver.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy || c.held || c.ending != nil || c.rd == nil {
		return false
	}
	c.busy, c.waits, c.loss = true, r.Waiting, r.Lost
	return true
}

// acquire runs rounds until one brings a majority, or an error. fresh says that no round of this claim was asked
// before.
func (c *claim) acquire(ctx context.Context, fresh bool) (driver.Grant, error) {
	for splits, slow := 0, 0; ; splits++ {
		rd, err := c.next(splits, fresh || splits > 0)
		if err == nil {
			err = rd.run(ctx)
		}
		if err == nil {
			var g driver.Grant
			if g, err = c.take(); err == nil {
				return g, nil
			}
		}
		if errors.Is(err, errSlow) {
			// slow makes it a split vote, so that it is tried again, or the final error.
			err = c.slow(&slow)
		}
		// The outcome of this round is unknown, or ctx has ended: only what is under way here is stopped, and the
		// caller undoes the claim.
		if rd == nil || !errors.Is(err, errSplit) && !driver.IsDefinite(err) {
			c.halt()
			return driver.Grant{}, err
		}
		// Nothing else takes this round back: either another one follows, or the error says that nothing is left.
		rd.abandon(ctx)
		if driver.IsDefinite(err) {
			return driver.Grant{}, err
		}
		if err := c.backOff(ctx, rd.patience); err != nil {
			return driver.Grant{}, err
		}
	}
}

// next begins a round. Each is more patient than the one before. When several take the votes from each other, the most
// patient one keeps its votes until the others have given up. The unit is four round trips, at least 4 ms; it doubles
// up to 400 ms, and stays well within the lease.
func (c *claim) next(splits int, fresh bool) (*round, error) {
	trip := time.Duration(c.d.trip.Load())
	patience := min(max(4*trip, shortestPatience)<<min(splits, 6), longestPatience, max(c.r.Lease/8, time.Millisecond))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != nil {
		return nil, c.gone()
	}
	// Not fresh: a context ended the last round while its questions went on. The same IDs are asked again, which takes
	// nothing twice.
	if !fresh {
		c.rd = c.copied(c.waits)
		return c.rd, nil
	}
	return c.begin(patience), nil
}

// backOff leaves the votes to others for a random time. Without it those that met would meet again.
func (c *claim) backOff(ctx context.Context, patience time.Duration) error {
	select {
	case <-time.After(rand.N(patience)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.d.base.Done():
		return driver.ErrClosed
	}
}

// slow decides about a round that took too long. A pushed vote is short, and may be over only because others have votes
// too, so that is tried again, unless the request is a try.
func (c *claim) slow(times *int) error {
	if *times++; *times < mostSlow && !c.r.Try {
		return errSplit
	}
	return &driver.UnavailableError{
		Op: "acquire", Name: c.r.Name, Err: fmt.Errorf("%w, which is %v", errSlow, c.r.Lease),
	}
}

// halt stops what the latest round has under way. The caller of Acquire has it undone.
func (c *claim) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rd != nil {
		c.rd.stop()
	}
}

// take makes the claim a hold, unless votes of it were taken away meanwhile. Nobody is told of that before there is a
// hold (see loses), so it must be counted here, under the same mutex.
func (c *claim) take() (driver.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != nil {
		return driver.Grant{}, c.gone()
	}
	if c.rd.count(granted) < c.d.quorum {
		t := c.rd.tally(time.Now())
		return driver.Grant{}, c.overruled(&t)
	}
	c.held = true
	return c.answer, nil
}

// again answers a copy of the request, by asking the nodes the same once more. It takes nothing that the first has not,
// and it does not end the claim if it fails.
func (c *claim) again(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	c.mu.Lock()
	if c.ending != nil || c.rd == nil {
		defer c.mu.Unlock()
		return driver.Grant{}, c.gone()
	}
	rd := c.copied(r.Waiting)
	c.mu.Unlock()
	err := rd.run(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	rd.stop()
	switch {
	// The copy's own votes say nothing of the claim's.
	case errors.Is(err, errSplit), errors.Is(err, errSlow):
		err = rd.unreachable("acquire")
	case err == nil && c.ending != nil:
		err = c.gone()
	}
	if err != nil {
		return driver.Grant{}, err
	}
	return c.answer, nil
}

// gone is the error for a request that was released or undone.
func (c *claim) gone() error {
	return fmt.Errorf("%s %q: this request was released or undone: %w", c.r.Kind, c.r.Name, driver.ErrLost)
}

// overruled is the error of a request that so many nodes have ended that the rest is no majority.
func (c *claim) overruled(t *tally) error {
	if t.gone != nil {
		return t.gone
	}
	return fmt.Errorf("%s %q: too many nodes have ended this request: %w", c.r.Kind, c.r.Name, driver.ErrLost)
}
