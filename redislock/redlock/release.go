// Release, on every node, until nothing is left. acquire.go and renew.go begin one too, when a hold is lost.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

const (
	// The pauses between two attempts to tell a node that a request is over. They double.
	shortestRetry = 10 * time.Millisecond
	longestRetry  = 500 * time.Millisecond

	// shortestHorizon is how long copies of a request are refused at least.
	shortestHorizon = 10 * time.Second
)

// ending is the release of a claim on every node: also on those that have refused or not answered, since their reply
// may have been lost. It goes on in the background until each node has said that nothing is left, or the lease is over.
type ending struct {
	undo bool
	news chan struct{} // closed and replaced at each change; guarded by claim.mu

	// Guarded by claim.mu: how many nodes have ended the hold, how many have said that there was none, and how many
	// have said nothing. A node that was asked twice and then found nothing is in none of these numbers: nobody knows
	// which attempt ended the hold.
	freed, without, unknown int
	slow                    int       // how many of the unknown are late as a rule
	lost                    error     // how the hold ended, from a node that says it
	known                   time.Time // since when the outcome of the release is known; zero if it is not
	told                    bool      // a caller was told that its release or undo ended the hold
	errs                    []error
}

// Release ends a hold on all nodes at once. It blocks until a majority has confirmed that, for twice the NodeTimeout at
// most. Nodes that have not answered are asked again in the background until they have, or until the lease is over. An
// error that matches driver.ErrLost says that no majority had the hold; after any other error the outcome is unknown.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	id := r.ID
	if !r.Undo {
		// The hold may be another driver's, which the nodes may know by the ID of a later round.
		id = d.roundOf(ctx, r.Key, r.ID)
	}
	c, err := d.claimOf(r, id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	// Once only: a second Release of the same request waits for the first.
	if c.ending == nil {
		c.end(r)
	}
	e := c.ending
	c.mu.Unlock()
	return c.await(ctx, e, r)
}

// claimOf returns the claim of a request. If this driver does not know the request (it is another's, or was ended
// before) it makes one: id is what the nodes know it by, and the votes are as far as anybody can tell.
func (d *Driver) claimOf(r *driver.Release, id string) (*claim, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	at := requestKey{r.Key, r.ID}
	c := d.current[at]
	if c == nil {
		c = &claim{d: d, r: driver.Request{Key: r.Key, ID: r.ID}}
		c.rd = &round{c: c, id: id, news: make(chan struct{}, 1), votes: make([]vote, len(d.nodes))}
		state := granted // as far as anybody knows
		if r.Undo {
			state = failed
		}
		for i := range c.rd.votes {
			c.rd.votes[i] = vote{state: state, cancel: func() {}, done: closed}
		}
		d.current[at] = c
	}
	return c, nil
}

// closed stands for a question that has been answered already.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// end begins the release on all nodes. The caller holds c.mu.
func (c *claim) end(r *driver.Release) {
	e := &ending{undo: r.Undo, news: make(chan struct{}), unknown: len(c.d.nodes)}
	c.ending = e
	rd := c.rd
	if rd == nil { // entered, but no round was begun
		e.unknown, e.without = 0, len(c.d.nodes)
		c.d.forget(c)
		return
	}
	rd.stop()
	rd.changed()
	// Beyond this no copy of the request can be granted, and what was granted has ended by itself.
	until := time.Now().Add(max(c.lease, r.Horizon, shortestHorizon))
	for i := range rd.votes {
		if rd.votes[i].state == absent {
			e.unknown--
			e.without++
			continue
		}
		slow := c.d.nodes[i].late.Load()
		if slow {
			e.slow++
		}
		started := c.d.spawn(func() { // ends when the node has said that nothing is left, or at until
			err := rd.free(i, r, until)
			c.mu.Lock()
			defer c.mu.Unlock()
			e.said(err, rd.votes[i].state == ended, slow)
			if e.unknown == 0 {
				c.d.forget(c)
			}
		})
		if !started {
			e.unknown--
			e.errs = append(e.errs, driver.ErrClosed)
		}
	}
	if e.unknown == 0 {
		c.d.forget(c)
	}
}

// errFreed says that a node had not voted, or that this was not known, and that nothing is left there now.
var errFreed = errors.New("nothing is left")

// errEither says that a node was told twice and then found nothing: the first attempt may have ended the hold, or
// nothing was there.
var errEither = errors.New("nothing was found, but an attempt before had no answer")

// free tells one node that the round is over, until it has understood. It returns nil if that ended a vote.
func (rd *round) free(i int, r *driver.Release, until time.Time) error {
	c := rd.c
	c.mu.Lock()
	done := rd.votes[i].done
	c.mu.Unlock()
	<-done // a release must not overtake its acquire
	c.mu.Lock()
	voted, unasked := rd.votes[i].state == granted, rd.votes[i].state == absent
	c.mu.Unlock()
	if unasked {
		return errFreed
	}
	give := &driver.Release{Key: c.r.Key, ID: rd.id, Keep: r.Keep, Horizon: max(r.Horizon, c.lease)}
	// Without a known vote only an undo is right: it also takes a place in the queue, and leaves a tombstone for late
	// copies.
	give.Undo = r.Undo || !voted
	err := c.d.insist(i, give, until)
	if err == nil && !voted {
		return errFreed
	}
	return err
}

// insist releases on one node until the outcome is known, or until that instant. It pauses between the attempts,
// doubling each time.
func (d *Driver) insist(i int, r *driver.Release, until time.Time) error {
	d.nodes[i].busy.Add(1)
	defer d.nodes[i].busy.Add(-1)
	for pause, first := shortestRetry, true; ; pause, first = min(2*pause, longestRetry), false {
		bounded, cancel := context.WithTimeout(d.base, d.opts.NodeTimeout)
		err := d.nodes[i].release(bounded, r)
		cancel()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrUnavailable):
			if first || r.Undo { // the first answer is certain, and an undo is content with either
				return err
			}
			return errEither
		case d.base.Err() != nil, !time.Now().Before(until):
			return fmt.Errorf("%s: %w", d.nodes[i].name, err)
		}
		enginekit.Pause(d.base, pause)
	}
}

// said records how the release has ended on one node. The caller holds claim.mu.
func (e *ending) said(err error, wasLost, slow bool) {
	e.unknown--
	if slow {
		e.slow--
	}
	switch {
	case err == nil:
		e.freed++
	case errors.Is(err, errEither):
	case errors.Is(err, errFreed):
		e.without++
	case errors.Is(err, driver.ErrLost):
		e.without++
		// A node that lost the hold itself knows less about why than one from which it was taken.
		if e.lost == nil || !wasLost {
			e.lost = err
		}
	default:
		e.without++ // the lease is over
		e.errs = append(e.errs, err)
	}
	close(e.news)
	e.news = make(chan struct{})
}

// await blocks until the outcome of the release is known, or for twice the NodeTimeout. The release goes on in any
// case.
func (c *claim) await(ctx context.Context, e *ending, r *driver.Release) error {
	deadline := time.NewTimer(2 * c.d.opts.NodeTimeout)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		// The outcome and the channel of news are read in one step, so that news which comes after the look wakes this
		// loop.
		wait, known, err := c.outcome(e, r, time.Now())
		news := e.news
		c.mu.Unlock()
		if known {
			return err
		}
		// The wait bounds one turn: the outcome depends on the time too, and no news tells of that.
		timer := time.NewTimer(wait)
		select {
		case <-news:
		case <-timer.C:
		case <-deadline.C:
			timer.Stop()
			return c.unconfirmed(e, nil)
		case <-ctx.Done():
			timer.Stop()
			return c.unconfirmed(e, ctx.Err())
		case <-c.d.base.Done():
			timer.Stop()
			return driver.ErrClosed
		}
		timer.Stop()
	}
}

// outcome says how the release has ended if that is known, or how long to wait for nodes that may answer soon. An
// undo is done when a majority has answered anything; a release when a majority has ended the hold, or too many had
// none. The caller holds c.mu.
func (c *claim) outcome(e *ending, r *driver.Release, now time.Time) (wait time.Duration, known bool, err error) {
	spare := len(c.d.nodes) - c.d.quorum
	switch {
	case r.Undo && len(c.d.nodes)-e.unknown >= c.d.quorum:
	case !r.Undo && e.freed >= c.d.quorum:
	case !r.Undo && e.without > spare:
		err = e.lost
		if err == nil {
			err = c.gone()
		}
	case e.unknown == 0:
		return 0, true, &driver.UnavailableError{Op: "release", Name: c.r.Name, Err: errEither}
	default:
		return time.Hour, false, nil // until there is news
	}
	if e.known.IsZero() {
		e.known = now
	}
	// The other nodes get a little grace, unless they are late as a rule.
	if wait = e.known.Add(c.d.grace()).Sub(now); wait > 0 && e.unknown > e.slow {
		return wait, false, nil
	}
	if err == nil && !r.Undo && e.told { // another caller was told that it ended the hold
		return 0, true, c.gone()
	}
	e.told = e.told || err == nil
	return 0, true, err
}

// unconfirmed is the error of a release that too few nodes have answered.
func (c *claim) unconfirmed(e *ending, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := len(c.d.nodes) - e.unknown
	return &driver.UnavailableError{Op: "release", Name: c.r.Name, Err: errors.Join(cause, fmt.Errorf(
		"%d of %d nodes have answered, and %d are needed; it goes on in the background", answered, len(c.d.nodes),
		c.d.quorum))}
}
