package memlock

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Several locks in one step. A mutex over the whole store makes that easy; what counts is that nothing is granted
// unless everything can be.

var _ driver.MultiAcquirer = (*Driver)(nil)

// AcquireAll grants all requests at one instant, or none; see [driver.MultiAcquirer]. It takes whatever Acquire takes,
// and does not wait.
func (d *Driver) AcquireAll(ctx context.Context, requests []*driver.Request) ([]driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := make([]demand, len(requests))
	for i, r := range requests {
		own := d.own(r)
		own.Try = true
		all[i] = demand{Request: own}
	}
	grants := make([]driver.Grant, len(all))
	sent := time.Now() // before the step, so not later than its own clock
	err := d.do(func(now time.Time, q *state) error {
		recs, err := q.acquireAll(now, all)
		for i, rec := range recs {
			rec.from = d
			grants[i] = grantOf(rec, all[i].Lease, sent)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return grants, nil
}

// acquireAll grants all of the requests, or none. They are of different locks, so granting one does not change what
// another finds. Every refusal comes before the first grant.
func (s *state) acquireAll(now time.Time, all []demand) ([]*record, error) {
	if err := differ(all); err != nil {
		return nil, err
	}
	s.advance(now)
	// Copies before everything else: what they have is in their own way, and they would be refused.
	if recs, err := s.allAgain(now, all); recs != nil || err != nil {
		return recs, err
	}
	for _, r := range all {
		if err := s.refuse(r, nil); err != nil {
			return nil, err
		}
	}
	for _, r := range all {
		if l := s.locks[r.Key]; l != nil && !l.free(r) {
			// Nothing is taken, but a holder that may retain the lock gives it back for the next attempt.
			s.recall(l)
			return nil, l.heldBy(r)
		}
	}
	recs := make([]*record, len(all))
	for i, r := range all {
		rec, err := s.admit(now, r)
		if err != nil {
			panic(fmt.Sprintf("memlock: %s %q was free in the same step: %v", r.Kind, r.Name, err)) // cannot be
		}
		recs[i] = rec
	}
	return recs, nil
}

// allAgain answers a copy of requests if any of them is known. They were granted together, so if not all of them are
// held, the step is over.
func (s *state) allAgain(now time.Time, all []demand) ([]*record, error) {
	var recs []*record
	known := 0
	for _, r := range all {
		rec := s.records[ref{r.Key, r.ID}]
		if rec != nil {
			known++
		}
		if rec != nil && rec.phase == held {
			recs = append(recs, rec)
		}
	}
	switch {
	case known == 0:
		return nil, nil
	case len(recs) < len(all):
		return nil, errGone
	}
	for i, rec := range recs {
		s.extend(rec, now.Add(all[i].Lease))
		rec.req.Lost = all[i].Lost
	}
	return recs, nil
}

// differ refuses a list that is empty, or in which a lock or an ID occurs twice.
func differ(all []demand) error {
	if len(all) == 0 {
		return fmt.Errorf("no requests: %w", driver.ErrUnsupported)
	}
	keys, ids := make(map[driver.Key]struct{}, len(all)), make(map[string]struct{}, len(all))
	for i, r := range all {
		keys[r.Key], ids[r.ID] = struct{}{}, struct{}{}
		if len(keys) <= i || len(ids) <= i {
			return fmt.Errorf("%s %q or its request is there twice: %w", r.Kind, r.Name, driver.ErrUnsupported)
		}
	}
	return nil
}
