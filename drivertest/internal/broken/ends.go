package broken

import (
	"cmp"
	"slices"
	"time"
)

// How holds end: by release, by their lease, by a break or with a delay, and the alarm for the next lease.

// end takes a holder away and lets in the next one.
func (s *Store) end(l *lock, h *entry) {
	l.holders = remove(l.holders, h)
	s.gone[h.r.ID] = true
	l.former, l.value = h, h.r.Label
	s.tell(l)
	if s.defect == FirstReleaseFrees {
		l.holders = slices.DeleteFunc(l.holders, h.reenters)
	}
	s.arm(l)
	s.refuseOrphans(l)
	if s.defect != TryOvertakes {
		s.serve(l)
		return
	}
	// TryOvertakes: for a moment the lock looks free although somebody waits.
	time.AfterFunc(3*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serve(l)
	})
}

// endAllOf takes away whatever d holds. It takes Store.mu itself.
func (s *Store) endAllOf(d *Driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.locks {
		for _, h := range slices.Clone(l.holders) {
			if h.client == d {
				s.end(l, h)
			}
		}
	}
}

// evict ends the holds whose lease is over. Every step begins with it.
func (s *Store) evict(l *lock) {
	now := time.Now()
	for _, h := range slices.Clone(l.holders) {
		if !now.Before(h.until) && s.delays(l, h, h.until) {
			continue
		}
		if !now.Before(h.until) {
			l.expired = append(l.expired, h)
			if h.woken && s.defect != DeadTakeSignals {
				s.wake(l)
			}
			s.end(l, h)
		}
	}
}

// delays keeps l closed after h was lost at the instant lost. It reports false if h has no delay, or if that is over.
func (s *Store) delays(l *lock, h *entry, lost time.Time) bool {
	if h.kept || h.r.LockDelay <= 0 || s.defect == LossIsForgotten {
		return false
	}
	h.kept, h.until = true, lost.Add(h.r.LockDelay)
	s.arm(l)
	s.tell(l)
	return time.Now().Before(h.until)
}

// endsPlainly reports whether the end of e means nothing but that it ends. Other ends have defects of their own.
func (e *entry) endsPlainly() bool { return e.r.LockDelay == 0 && !e.r.Retains }

// arm sets the alarm for the next lease that runs out, so that waiters are let in although nobody calls.
func (s *Store) arm(l *lock) {
	if l.timer != nil {
		l.timer.Stop()
	}
	if len(l.holders) == 0 || s.defect == DeadWakeNobody && l.holders[0].endsPlainly() && !l.waited {
		return
	}
	next := slices.MinFunc(l.holders, func(a, b *entry) int {
		return cmp.Compare(a.until.UnixNano(), b.until.UnixNano())
	})
	l.timer = time.AfterFunc(time.Until(next.until), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.evict(l)
	})
}
