// Renew, on all nodes at once. The scheduler of the portable layer calls it; a lost hold is released here too, because
// the votes that are left would keep others out.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// Renew renews each hold on every node that has voted for it, all nodes at once, in one pipeline each. A hold is
// renewed when a majority has confirmed, and lost when no majority is left that could. A node that has not voted
// because it could not be reached is asked again for its vote. Renew blocks until every hold is answered for or ctx
// ends, and calls done exactly once for each, never after it has returned.
func (d *Driver) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	r := &renewing{
		d: d, batch: batch, done: done, holds: make([]renewed, len(batch)), left: len(batch), over: make(chan struct{}),
	}
	if r.left == 0 {
		return
	}
	plans := r.plan(ctx)
	for n := range plans {
		r.start(n, &plans[n])
	}
	// After stop, answers that still come find every hold answered for, so done is not called again.
	select {
	case <-r.over:
		return
	case <-ctx.Done():
		r.stop(ctx.Err())
	case <-d.base.Done():
		r.stop(driver.ErrClosed)
	}
}

// holder returns the claim of a hold, or nil if this driver does not know it.
func (d *Driver) holder(at requestKey) *claim {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current[at]
}

// renewing is one call of Renew.
type renewing struct {
	d     *Driver
	batch []driver.Renewal
	over  chan struct{} // closed when every hold has been answered for

	mu    sync.Mutex // guards what follows; done is called under it, so never twice for a hold, nor late
	done  func(i int, err error)
	holds []renewed // by the index in the batch
	left  int       // how many holds are not answered for
}

// renewed is what the nodes have said of one hold. asked is how many were asked; kept, lost and unknown are their
// answers.
type renewed struct {
	claim    *claim // nil if this driver does not know the hold
	answered bool   // done was called for it

	asked, kept, lost, unknown int
	err                        error // the latest that says nothing of the hold
	why                        error // how it was lost, from a node that says it
}

// plan is what one node is asked: holds, and their indexes in the batch.
type plan struct {
	holds []driver.Renewal
	which []int
}

// plan says which node is asked for what. Nobody else has r yet, so it takes no lock but finish's.
func (r *renewing) plan(ctx context.Context) []plan {
	plans := make([]plan, len(r.d.nodes))
	for i := range r.batch {
		h, b := &r.holds[i], r.batch[i]
		h.claim = r.d.holder(requestKey{b.Key, b.ID})
		if longest := r.d.opts.LongestLease; b.Lease > longest {
			r.finish(i,
				fmt.Errorf("redlock: a lease of %v is longer than the longest, %v: %w",
					b.Lease, longest, driver.ErrUnsupported))
			continue
		}
		// Another driver's hold, which may have taken several rounds.
		if h.claim == nil {
			b.ID = r.d.roundOf(ctx, b.Key, b.ID)
		}
		owner := b.Owner
		for _, n := range h.voters(len(plans), &b) {
			b.Owner = joinRoundOwner(b.ID, owner)
			plans[n].holds, plans[n].which = append(plans[n].holds, b), append(plans[n].which, i)
			h.asked++
		}
		// No majority is left that could confirm.
		if h.asked < r.d.quorum {
			r.finish(i, &driver.LostError{Kind: b.Kind, Name: b.Name, Reason: driver.LostExpired})
		}
	}
	return plans
}

// voters returns the nodes that have voted for the hold, and sets the ID under which they know it. A node that has not
// voted, because it could not be reached or was in use, is asked for its vote in the background: a hold gains votes
// while it lasts.
func (h *renewed) voters(nodes int, b *driver.Renewal) (which []int) {
	c := h.claim
	if c == nil { // another driver's, or one that is over: each may know it
		for n := range nodes {
			which = append(which, n)
		}
		return which
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending != nil || !c.held {
		return nil
	}
	// lease is raised before anything is sent: a release must outlast what a node may have been told.
	c.lease, b.ID = max(c.lease, b.Lease), c.rd.id
	for n := range nodes {
		switch c.rd.votes[n].state {
		case granted:
			which = append(which, n)
		case failed, refused, absent:
			// As a try: a hold needs no place in that node's queue.
			c.rd.ask(n, true, c.rd.votes[n].done)
		case asked, queued, ended, yielded:
		}
	}
	return which
}

// start asks one node, in a goroutine of its own.
func (r *renewing) start(n int, p *plan) {
	if len(p.holds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.d.base, r.d.opts.NodeTimeout)
	started := r.d.spawn(func() { // ends with ctx
		defer cancel()
		r.d.nodes[n].renew(ctx, p.holds, func(at int, err error) { r.said(n, p.which[at], err) })
	})
	if !started {
		cancel()
		for _, i := range p.which {
			r.said(n, i, driver.ErrClosed)
		}
	}
}

// said records what a node has said of a hold. It may be called from several goroutines.
func (r *renewing) said(n, i int, err error) {
	lost := errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrUnavailable)
	if c := r.holds[i].claim; c != nil && lost {
		c.mu.Lock()
		// The node has lost the vote, so it must not be counted by the release or a later renewal.
		if c.rd != nil && c.rd.votes[n].state == granted {
			c.rd.votes[n].state = ended
		}
		c.mu.Unlock()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &r.holds[i]
	switch {
	case err == nil:
		h.kept++
	case lost:
		h.lost++
		h.why = worse(h.why, err)
	default:
		h.unknown++
		h.err = err
	}
	r.judge(i)
}

// worse returns the reason that says more: any hold whose end was not heard of looks like an expired lease in the end.
func worse(a, b error) error {
	var lost *driver.LostError
	if a != nil && errors.As(b, &lost) && lost.Reason == driver.LostExpired {
		return a
	}
	return b
}

// judge answers for a hold as soon as its fate is known. The caller holds r.mu.
func (r *renewing) judge(i int) {
	h, q := &r.holds[i], r.d.quorum
	switch {
	case h.kept >= q:
		r.answer(i, nil)
	case h.asked-h.lost < q && h.lost > 0:
		r.answer(i, h.why)
	case h.kept+h.lost+h.unknown == h.asked:
		r.answer(i, &driver.UnavailableError{Op: "renew", Name: r.batch[i].Name, Err: fmt.Errorf(
			"%d of %d nodes have confirmed, and %d are needed: %w", h.kept, len(r.d.nodes), q, h.err)})
	}
}

// finish answers for a hold.
func (r *renewing) finish(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer(i, err)
}

// answer is finish for a caller that holds r.mu. The first answer counts.
func (r *renewing) answer(i int, err error) {
	h := &r.holds[i]
	if h.answered {
		return
	}
	h.answered = true
	if c := h.claim; c != nil && errors.Is(err, driver.ErrLost) {
		c.mu.Lock()
		c.told = true
		// What is left on some nodes would keep others out.
		if c.ending == nil {
			c.end(&driver.Release{Key: c.r.Key, ID: c.r.ID})
		}
		c.mu.Unlock()
	}
	r.done(i, err)
	if r.left--; r.left == 0 {
		close(r.over)
	}
}

// stop answers for all holds that are not answered for.
func (r *renewing) stop(cause error) {
	for i := range r.batch {
		err := cause
		if !errors.Is(err, driver.ErrClosed) {
			err = &driver.UnavailableError{Op: "renew", Name: r.batch[i].Name, Err: cause}
		}
		r.finish(i, err)
	}
}
