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
	// The pauses between two attempts to tell a node that a request is over.
	shortestRetry = 10 * time.Millisecond
	longestRetry  = 500 * time.Millisecond

	// shortestHorizon is for how long copies of a request are refused at least.
	shortestHorizon = 10 * time.Second
)

// ending is the release of a claim, on every node: also on those that have refused, or have not answered,
// since the reply may have been lost. It goes on in the background until each has said that nothing is
// left, or the lease is over.
type ending struct {
	undo bool
	news chan struct{} // closed and replaced at each change; guarded by claim.mu

	// Guarded by claim.mu: how many nodes have ended the hold, have said that there was none, and have not
	// said anything. Those that were asked twice and then found nothing are in none of these numbers: nobody
	// knows which attempt it was.
	freed, without, unknown int
	slow                    int       // of the unknown: those that are late as a rule
	lost                    error     // of a node that says how the hold ended
	known                   time.Time // since when it is known how the release has ended; zero if it is not
	told                    bool      // somebody was told that his release, or undo, has ended the hold
	errs                    []error
}

// Release ends a hold on all nodes at once, and returns when a majority has confirmed that. Nodes that have not
// answered are asked again in the background until they have, or until the lease is over.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	id := r.ID
	if !r.Undo {
		id = d.roundOf(ctx, r.Key, r.ID)
	}
	c, err := d.claimOf(r, id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.ending == nil {
		c.end(r)
	}
	e := c.ending
	c.mu.Unlock()
	return c.await(ctx, e, r)
}

// claimOf returns the claim of a request, or one of a request that this driver does not know: another's, or one that
// was ended before: then id is what the nodes know it by.
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

// closed is what has been waited for already.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// end begins the release. The caller holds c.mu.
func (c *claim) end(r *driver.Release) {
	e := &ending{undo: r.Undo, news: make(chan struct{}), unknown: len(c.d.nodes)}
	c.ending = e
	rd := c.rd
	if rd == nil { // it has been entered, and no round begun
		e.unknown, e.without = 0, len(c.d.nodes)
		c.d.forget(c)
		return
	}
	rd.stop()
	rd.changed()
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

// errFreed says that a node had not voted, or nobody knew, and that nothing is left there now.
var errFreed = errors.New("nothing is left")

// errEither says that a node was told twice, and then found nothing.
var errEither = errors.New("nothing was found, but an attempt before had no answer")

// free tells one node that the round is over, until it has understood. It returns nil if a vote was ended by that.
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
	give.Undo = r.Undo || !voted
	err := c.d.insist(i, give, until)
	if err == nil && !voted {
		return errFreed
	}
	return err
}

// insist releases on one node until it is known what came of it, or until then.
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
			if first || r.Undo {
				return err
			}
			return errEither
		case d.base.Err() != nil, !time.Now().Before(until):
			return fmt.Errorf("%s: %w", d.nodes[i].name, err)
		}
		enginekit.Pause(d.base, pause)
	}
}

// said takes in how the release has ended on one node. The caller holds claim.mu.
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

// await waits until a majority has answered.
func (c *claim) await(ctx context.Context, e *ending, r *driver.Release) error {
	deadline := time.NewTimer(2 * c.d.opts.NodeTimeout)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		wait, known, err := c.outcome(e, r, time.Now())
		news := e.news
		c.mu.Unlock()
		if known {
			return err
		}
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

// outcome says how the release has ended, if that is known, or for how long to wait for nodes that may answer soon. The
// caller holds c.mu.
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
	if wait = e.known.Add(c.d.grace()).Sub(now); wait > 0 && e.unknown > e.slow {
		return wait, false, nil
	}
	if err == nil && !r.Undo && e.told {
		return 0, true, c.gone()
	}
	e.told = e.told || err == nil
	return 0, true, err
}

// unconfirmed is the error of a release to which no majority has answered.
func (c *claim) unconfirmed(e *ending, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered := len(c.d.nodes) - e.unknown
	return &driver.UnavailableError{Op: "release", Name: c.r.Name, Err: errors.Join(cause, fmt.Errorf(
		"%d of %d nodes have answered, and %d are needed; it goes on in the background", answered, len(c.d.nodes),
		c.d.quorum))}
}
