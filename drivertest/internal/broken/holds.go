package broken

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Requests beside a hold: whose they are, and when they would wait for themselves.

// Convert asks for another mode beside a hold.
func (d *Driver) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	if err := d.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	e, held, err := d.askBeside(beside, r)
	if err != nil {
		return driver.Grant{}, err
	}
	return d.await(ctx, e, held, r)
}

// askBeside is the step of Convert: it grants, queues in front, or refuses.
func (d *Driver) askBeside(beside string, r *driver.Request) (e *entry, held *driver.HeldError, err error) {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Kind != driver.KindRWMutex {
		return nil, nil, driver.ErrUnsupported
	}
	l := s.lock(r.Key)
	l.converted = true
	s.evict(l)
	if e, held, err := s.known(l, r); e != nil || err != nil {
		return e, held, err
	}
	base := find(l.holders, beside)
	if base == nil || base.kept {
		return nil, nil, &driver.LostError{Kind: r.Kind, Name: r.Name, Reason: driver.LostExpired}
	}
	e = &entry{r: *r, client: d, since: time.Now(), beside: beside, family: base.root(), granted: make(chan struct{})}
	mode := l.strongest(e)
	e.upgrade = r.Mode == driver.Exclusive && mode != driver.Exclusive
	stuck := mode == driver.Shared && (r.Mode == driver.Exclusive || r.Mode == driver.Upgradeable && l.upgradeable())
	switch {
	case stuck && s.defect != ReaderUpgrades:
		return nil, nil, driver.ErrDeadlock
	case !e.upgrade && !stuck || s.fits(l, e):
		s.admit(l, e)
		return e, nil, nil
	case r.Try:
		return nil, nil, s.held(l, r.Key)
	case s.defect == UpgradeGoesLast:
		l.waiters = append(l.waiters, e)
	default:
		l.waiters = append([]*entry{e}, l.waiters...)
	}
	return e, s.held(l, r.Key), nil
}

// root returns the ID of the first hold of e's owner.
func (e *entry) root() string {
	if e.family == "" {
		return e.r.ID
	}
	return e.family
}

// related reports whether e and h belong to one owner.
func (e *entry) related(h *entry) bool { return e.root() == h.root() }

// strongest returns the strongest mode that the owner of e has by now.
func (l *lock) strongest(e *entry) driver.Mode {
	mode := driver.Shared
	for _, h := range l.holders {
		switch {
		case !e.related(h) || h.r.Mode == driver.Shared:
		case h.r.Mode == driver.Exclusive:
			return driver.Exclusive
		default:
			mode = driver.Upgradeable
		}
	}
	return mode
}

// upgradeable reports whether anybody has the upgradeable read.
func (l *lock) upgradeable() bool {
	return slices.ContainsFunc(l.holders, func(h *entry) bool { return h.r.Mode == driver.Upgradeable })
}

// refuseOrphans ends the waits beside a hold that is over.
func (s *Store) refuseOrphans(l *lock) {
	for _, w := range slices.Clone(l.waiters) {
		if w.beside == "" || find(l.holders, w.beside) != nil || s.defect == UpgradeOutlivesRead {
			continue
		}
		l.waiters = remove(l.waiters, w)
		w.refused = &driver.LostError{Kind: w.r.Kind, Name: w.r.Name, Reason: driver.LostExpired}
		close(w.granted)
	}
}

// Requeue, one step of two halves: most of its defects do one half without the other.

// Requeue gives a hold back and queues behind all waiters.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if err := d.reach(ctx); err != nil {
		return driver.Grant{}, err
	}
	e, held, err := d.askAgain(give, r)
	if err != nil {
		return driver.Grant{}, err
	}
	g, err := d.await(ctx, e, held, r)
	if err != nil && d.s.defect == RequeueComesBack {
		d.comeBack(give)
	}
	return g, err
}

// askAgain is the step of Requeue.
func (d *Driver) askAgain(give *driver.Release, r *driver.Request) (e *entry, held *driver.HeldError, err error) {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(give.Key)
	s.evict(l)
	if e, held, err := s.known(l, r); e != nil || err != nil {
		return e, held, err
	}
	h := find(l.holders, give.ID)
	if err := requeues(give, r); err != nil {
		if h != nil && s.defect == RequeueGivesFirst {
			s.end(l, h)
		}
		return nil, nil, err
	}
	e = &entry{r: *r, client: d, since: time.Now(), by: requeue, granted: make(chan struct{})}
	switch {
	case (h == nil || h.kept) && s.defect != RequeueTakesAnew:
		return nil, nil, &driver.LostError{Kind: give.Kind, Name: give.Name, Reason: driver.LostExpired}
	case h == nil:
	case s.defect == RequeueOvertakes:
		l.waiters = append([]*entry{e}, l.waiters...)
		s.giveBack(l, h)
		return e, s.held(l, r.Key), nil
	case s.defect == RequeueWakesNobody && len(l.waiters) > 0:
		l.holders = remove(l.holders, h)
		s.gone[h.r.ID] = true
		l.waiters = append(l.waiters, e)
		return e, s.held(l, r.Key), nil
	default:
		s.giveBack(l, h)
	}
	return s.enter(l, e)
}

// requeues refuses what Requeue does not support, before anything is released.
func requeues(give *driver.Release, r *driver.Request) error {
	if r.Try || r.Named || r.Mode != driver.Exclusive || give.Key != r.Key || give.Undo || give.Keep > 0 {
		return driver.ErrUnsupported
	}
	return nil
}

// giveBack ends the hold that a Requeue releases.
func (s *Store) giveBack(l *lock, h *entry) {
	token := l.token
	s.end(l, h)
	if s.defect == RequeueKeepsID {
		delete(s.gone, h.r.ID)
	}
	if s.defect == RequeueKeepsToken && l.token == token {
		l.token -= uint64(h.grant.Tokens)
	}
}

// comeBack is RequeueComesBack: it makes the released hold a hold again.
func (d *Driver) comeBack(give *driver.Release) {
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gone, give.ID)
	l := s.lock(give.Key)
	r := driver.Request{Key: give.Key, ID: give.ID, Weight: 1, Tokens: 1, Lease: give.Horizon}
	s.admit(l, &entry{r: r, client: d, granted: make(chan struct{})})
}

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

var _ driver.Resizer = (*Driver)(nil)

// Resize changes the limit of a semaphore that is in use.
func (d *Driver) Resize(ctx context.Context, key driver.Key, limit int) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	s := d.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lock(key)
	s.evict(l)
	tooMany := func(w *entry) bool { return w.r.Weight > limit }
	switch {
	case len(l.holders)+len(l.waiters) == 0:
		return nil
	case slices.ContainsFunc(l.waiters, tooMany) && s.defect != ResizeLocksOut:
		return driver.ErrConflict
	}
	l.limit = limit
	for _, w := range l.waiters {
		w.r.Limit = limit
	}
	if s.defect != ResizeWakesNobody {
		s.serve(l)
	}
	return nil
}
