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
