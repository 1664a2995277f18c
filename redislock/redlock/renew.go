package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// Renew renews each hold on every node that has voted for it, all nodes at once, each in one pipeline. A hold is
// renewed when a majority has confirmed, and lost when no majority is left that could. A node that has not voted,
// because it did not answer then, is asked again for its vote.
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

	mu    sync.Mutex // guards what follows; done is called under it, so that it is not called twice or late
	done  func(i int, err error)
	holds []renewed
	left  int
}

// renewed is what the nodes have said of one hold.
type renewed struct {
	claim    *claim // nil if it is not known
	answered bool

	asked, kept, lost, unknown int
	err                        error // the latest
	why                        error // of a node that says how it was lost
}

// plan is what one node is asked: holds, and where they are in the batch.
type plan struct {
	holds []driver.Renewal
	which []int
}

// plan says which node is asked for what. Nobody else has r yet.
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
		if h.claim == nil {
			b.ID = r.d.roundOf(ctx, b.Key, b.ID)
		}
		owner := b.Owner
		for _, n := range h.voters(len(plans), &b) {
			b.Owner = shown(b.ID, owner)
			plans[n].holds, plans[n].which = append(plans[n].holds, b), append(plans[n].which, i)
			h.asked++
		}
		if h.asked < r.d.quorum {
			r.finish(i, &driver.LostError{Kind: b.Kind, Name: b.Name, Reason: driver.LostExpired})
		}
	}
	return plans
}

// voters returns the nodes that have voted for the hold, and sets the ID under which they have. A node that has not,
// because it could not be reached or was in use, is asked for its vote.
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
	c.lease, b.ID = max(c.lease, b.Lease), c.rd.id
	for n := range nodes {
		switch c.rd.votes[n].state {
		case granted:
			which = append(which, n)
		case failed, refused, absent:
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

// said takes in what a node has said of a hold.
func (r *renewing) said(n, i int, err error) {
	lost := errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrUnavailable)
	if c := r.holds[i].claim; c != nil && lost {
		c.mu.Lock()
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

// worse returns the reason that says more: a lease that has run out is what is left of any.
func worse(a, b error) error {
	var lost *driver.LostError
	if a != nil && errors.As(b, &lost) && lost.Reason == driver.LostExpired {
		return a
	}
	return b
}

// judge answers for a hold as soon as it is known what became of it. The caller holds r.mu.
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

// answer is finish for who holds r.mu.
func (r *renewing) answer(i int, err error) {
	h := &r.holds[i]
	if h.answered {
		return
	}
	h.answered = true
	if c := h.claim; c != nil && errors.Is(err, driver.ErrLost) {
		c.mu.Lock()
		c.told = true
		if c.ending == nil { // what is left on some nodes keeps others out
			c.end(&driver.Release{Key: c.r.Key, ID: c.r.ID})
		}
		c.mu.Unlock()
	}
	r.done(i, err)
	if r.left--; r.left == 0 {
		close(r.over)
	}
}

// stop answers for all holds that are left.
func (r *renewing) stop(cause error) {
	for i := range r.batch {
		err := cause
		if !errors.Is(err, driver.ErrClosed) {
			err = &driver.UnavailableError{Op: "renew", Name: r.batch[i].Name, Err: cause}
		}
		r.finish(i, err)
	}
}
