package memlock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Calls that block: a goroutine waits for the answer that a later step (store.go) leaves for its request.

// call is a goroutine that waits in Acquire. Copies of one request may wait side by side: they share a place in the
// queue.
type call struct {
	from *Driver
	// Closed by whoever settles the call, under the store's mutex; grant and err are written before that and constant
	// after it.
	done  chan struct{}
	grant driver.Grant
	err   error
	// Carries who is in the way now. The store sends under its mutex. One place is enough, because only the latest
	// counts. It is nil if the caller does not want to know.
	moved chan *driver.HeldError
}

// told is how many waiters of a lock are told of a new holder. Telling all of them would make each hand-off wake
// everybody.
const told = 16

// notify leaves news for c, in place of older news that it has not received. It never blocks: only the store sends,
// under its mutex, so the place is free after the first select.
func (c *call) notify(e *driver.HeldError) {
	if c.moved == nil {
		return
	}
	select {
	case <-c.moved: //nolint:errcheck // news that is out of date, not an error
	default:
	}
	c.moved <- e
}

// settle answers c. It is called once, under the store's mutex.
func (c *call) settle(g driver.Grant, err error) {
	c.grant, c.err = g, err
	close(c.done)
}

// enter runs a step that may queue r, and waits if it did. It returns when r is settled, or when ctx ends.
func (d *Driver) enter(
	ctx context.Context, r *driver.Request, step func(now time.Time, q *state) (*record, error),
) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	sent := time.Now() // before the step, so not later than its own clock
	c, g, err := d.begin(r, sent, step)
	if c == nil {
		return g, err
	}
	for {
		select {
		case <-c.done: // granted, refused, undone, or closed
			return c.grant, c.err
		case e := <-c.moved: // another holder; called in this goroutine, so that it is told before the end of the wait
			r.Waiting(e)
		case <-ctx.Done(): // the caller gives up; a grant may come first
			return d.give(ctx, c, r)
		}
	}
}

// begin runs the step. The call that it returns is nil if the step was all.
func (d *Driver) begin(
	r *driver.Request, sent time.Time, step func(now time.Time, q *state) (*record, error),
) (*call, driver.Grant, error) {
	s := d.store
	s.mu.Lock()
	if d.closed {
		s.mu.Unlock()
		return nil, driver.Grant{}, driver.ErrClosed
	}
	rec, err := step(time.Now(), s.q)
	if rec != nil {
		rec.from = d
	}
	// A refusal is a step too: advance may have ended leases and let others in, who are answered now.
	if err != nil || rec.phase == held {
		s.finish()
		s.unlock()
		if err != nil {
			return nil, driver.Grant{}, err
		}
		return nil, grantOf(rec, r.Lease, sent), nil
	}
	c := &call{from: d, done: make(chan struct{})}
	if r.Waiting != nil {
		c.moved = make(chan *driver.HeldError, 1)
	}
	s.calls[rec.ref] = append(s.calls[rec.ref], c)
	// Read under the mutex, and told without it: Waiting is the caller's and may call the driver.
	inTheWay := s.q.locks[r.Key].heldBy(rec.demand())
	s.finish()
	s.unlock()
	if r.Waiting != nil {
		r.Waiting(inTheWay)
	}
	return c, driver.Grant{}, nil
}

// give gives a wait up after its context has ended. Leases that end now are ended first: r may have been granted at
// this very instant.
func (d *Driver) give(ctx context.Context, c *call, r *driver.Request) (driver.Grant, error) {
	s := d.store
	s.mu.Lock()
	now := time.Now()
	s.q.advance(now)
	s.finish()
	select {
	case <-c.done: // settled before the mutex was ours, or just now: the answer stands, or a grant would be lost
		s.mu.Unlock()
		return c.grant, c.err
	default:
	}
	// The request stays queued while a copy of it waits in another goroutine.
	if rec := s.leave(ref{r.Key, r.ID}, func(other *call) bool { return other == c }); rec != nil {
		s.q.withdraw(now, rec)
	}
	s.finish()
	s.mu.Unlock()
	return driver.Grant{}, ctx.Err()
}

// leave takes calls off a waiting request. It returns the request if that was the last of them, because nobody would
// hear of its grant.
func (s *store) leave(at ref, which func(*call) bool) *record {
	s.calls[at] = slices.DeleteFunc(s.calls[at], which)
	if len(s.calls[at]) > 0 {
		return nil
	}
	delete(s.calls, at)
	return s.q.records[at]
}

// grantOf returns the answer for rec. sent is from before the step, so it is not later than the grant.
func grantOf(rec *record, lease time.Duration, sent time.Time) driver.Grant {
	return driver.Grant{Token: rec.block.first, Tokens: rec.block.n, Nonce: rec.block.nonce, Sent: sent, Lease: lease}
}
