package memlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// A hold goes on to another client (docs/rationale.md, Adoption): another request takes its place, so everything that
// its first client still sends finds nothing.

var _ driver.Adopter = (*Driver)(nil)

// Adopt gives a hold of another client to r; see [driver.Adopter]. It does not wait.
func (d *Driver) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	own := d.own(r)
	return d.enter(ctx, own, func(now time.Time, q *state) (*record, error) { return q.adopt(now, from, own) })
}

// adopt puts a record of r in the place of the hold with the ID from.
func (s *state) adopt(now time.Time, from string, r *driver.Request) (*record, error) {
	s.advance(now)
	at := ref{r.Key, r.ID}
	if rec := s.records[at]; rec != nil {
		return s.again(now, rec, demand{Request: r})
	}
	if t := s.graves.tombs[at]; t != nil {
		return nil, s.lost(t)
	}
	if err := check(r); err != nil {
		return nil, err
	}
	old, err := s.live(ref{r.Key, from})
	if err != nil {
		return nil, err
	}
	// The other holds would stay with the first client, and both would be inside.
	if old.req.Named || len(old.group.holds) > 1 {
		return nil, fmt.Errorf("the owner of the hold has, or may have, others beside it: %w", driver.ErrNested)
	}
	return s.replace(now, old, r), nil
}

// replace ends old as adopted, and makes r the hold in its place, with a token of its own. What the hold may do stays
// that of old, because others are in beside it.
func (s *state) replace(now time.Time, old *record, r *driver.Request) *record {
	l, g, ends := s.locks[old.ref.key], old.group, now.Add(r.Lease)
	// The lease never gets shorter by an adoption, except for a retained one, which is short on purpose.
	if old.at.After(ends) && !old.retained {
		ends = old.at
	}
	rec := &record{entry: entry{ref: ref{r.Key, r.ID}}, req: *r, phase: held, since: now, group: g}
	rec.req.Mode, rec.req.Weight, rec.req.Limit = old.req.Mode, old.req.Weight, old.req.Limit
	rec.req.LockDelay, rec.req.Waiting = old.req.LockDelay, nil
	// A token and nonce of its own: the resource can tell the two clients apart, and refuses the first one's late
	// writes.
	g.block = mint(now, l.last, r.Tokens)
	g.block.nonce = r.ID
	l.last = g.block.end()
	g.since, g.holds, rec.block = now, []*record{rec}, g.block
	s.leases.remove(&old.entry)
	delete(s.records, old.ref)
	s.records[rec.ref] = rec
	s.leases.add(&rec.entry, ends)
	// The first client's renewals and releases find the tomb, and are answered with LostAdopted.
	s.graves.bury(tomb{entry: entry{ref: old.ref}, reason: driver.LostAdopted, token: old.block.first},
		now.Add(max(old.req.Lease, r.Lease)))
	if tell := old.req.Lost; tell != nil { // called when the mutex has been given up
		s.recalled = append(s.recalled, func() { tell(driver.LostAdopted, nil) })
	}
	s.change(old.ref.key)
	s.recallIfQueued(rec)
	// An upgrade of the hold may have waited; it is refused.
	s.drain(now, l)
	return rec
}
