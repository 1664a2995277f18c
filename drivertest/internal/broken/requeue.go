package broken

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

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
