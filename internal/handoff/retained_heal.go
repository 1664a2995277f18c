package handoff

// heal lets the faults stop in s, in which nothing is under way. B asks again once a tick, and must be served at the
// first time that it does unless A is dead. If deaf, the engine still cannot reach A, which hears the answers to its
// renewals only; then B must be served when A has renewed once.
func (m *retains) heal(s retainState, deaf bool) Fault {
	for ticks := m.bound(&s); !m.settle(&s, deaf); ticks-- {
		if ticks == 0 {
			return LostWaiter
		}
		s = m.tick(s)
	}
	return ""
}

// bound is how many ticks a waiter of s may have to wait. A client that is dead keeps the lock for a lease; for the
// short one if it knew that the engine had shortened its grant.
func (m *retains) bound(s *retainState) int {
	switch {
	case s.holder == 0 || s.requests[s.holder-1].phase != crashed:
		return 0
	case s.requests[s.holder-1].cut == cutConfirmed:
		return int(m.short)
	}
	return int(m.lease)
}

// settle lets B ask once, and then each request do what it can without time passing, until nothing changes. It reports
// whether nobody waits.
func (m *retains) settle(s *retainState, deaf bool) bool {
	if s.requests[bRequest].phase == asking {
		m.exchange(s, acquire, bRequest, deaf)
	}
	for {
		before := *s
		for i := range s.requests {
			m.settleOne(s, i, deaf)
		}
		if served := !s.has(asking) && s.requests[bRequest].phase != asking; served || *s == before {
			return served
		}
	}
}

// settleOne is settle for one request. B asks again only when the lock is free, because the engine tells it so.
func (m *retains) settleOne(s *retainState, i int, deaf bool) {
	switch p := &s.requests[i]; p.phase {
	case asking:
		if i != bRequest || s.holder == 0 {
			m.exchange(s, acquire, i, deaf)
		}
	case inside:
		if m.mayRetain(i, *p) {
			p.retain()
			return
		}
		m.leave(p)
	case retained:
		if deaf { // A keeps the grant for as long as it can
			m.exchange(s, shorten, i, deaf)
		}
	case lost, leaving:
		m.exchange(s, release, i, deaf)
	}
}

// exchange delivers a request and all that follows from it at once.
func (m *retains) exchange(s *retainState, k kind, i int, deaf bool) {
	m.send(s, k, i)
	for s.wire[0] != 0 {
		q := s.wire[0]
		if s.wire.take(0); q.kind() != wanted || !deaf {
			m.deliver(s, q)
		}
	}
}
