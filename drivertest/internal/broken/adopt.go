package broken

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Adopter = (*Driver)(nil)

// Adopt gives a hold to another request.
func (d *Driver) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	if err := d.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	g, told, err := d.adopt(from, r)
	if told != nil && d.s.defect != AdoptionIsSilent {
		told(driver.LostAdopted, nil)
	}
	return g, err
}

// adopt puts an entry for r in the place of the hold from, under the store's mutex. told is the giver's Lost, which the
// caller calls without it.
func (d *Driver) adopt(
	from string, r *driver.Request,
) (g driver.Grant, told func(driver.LostReason, error), err error) {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(r.Key)
	s.evict(l)
	// The defects of acquiring and minting are elsewhere, so adoption has its own code for both.
	if e := find(l.holders, r.ID); e != nil {
		return e.grant, nil, nil
	}
	h := find(l.holders, from)
	switch {
	case h == nil || h.kept || s.undone[r.ID]:
		return driver.Grant{}, nil, &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	case h.r.Named:
		return driver.Grant{}, nil, driver.ErrNested
	}
	e := &entry{r: *r, client: d, since: time.Now(), until: h.until, granted: h.granted}
	e.r.Mode, e.r.Weight, e.r.Limit = h.r.Mode, h.r.Weight, h.r.Limit
	if end := e.since.Add(r.Lease); end.After(e.until) {
		e.until = end
	}
	l.token++
	e.grant = driver.Grant{Token: l.token, Tokens: 1, Nonce: "nonce of " + r.ID, Sent: time.Now(), Lease: r.Lease}
	if s.defect == AdoptionKeepsToken {
		e.grant.Token, e.grant.Nonce = h.grant.Token, h.grant.Nonce
	}
	if s.defect != AdoptionKeepsGiver {
		l.holders = remove(l.holders, h)
		s.gone[from] = true
	}
	l.holders = append(l.holders, e)
	s.tell(l)
	s.arm(l)
	return e.grant, h.r.Lost, nil
}
