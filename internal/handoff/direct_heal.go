package handoff

// heal lets the faults stop in s, in which nothing is under way, and says what is wrong with what follows, as that of
// queues does and with the same bound: naming a waiter that dies costs no more than granting it the lock.
func (m *directs) heal(s directState) Fault {
	if m.orphaned(&s.queueState) {
		return Orphan
	}
	for range m.bound(&s.queueState) {
		if through, fault := m.settle(&s); through || fault != "" {
			break
		}
		s = m.tick(s)
	}
	through, fault := m.settle(&s)
	switch {
	case fault != "":
		return fault
	case !through:
		return LostWaiter
	case m.orphaned(&s.queueState):
		return Orphan
	}
	return ""
}

// settle lets each client do what it can without time passing, until nothing changes. It reports whether all are
// through, and finds a holder that the engine does not confirm.
func (m *directs) settle(s *directState) (through bool, fault Fault) {
	for {
		before := *s
		through = true
		for c := range m.clients {
			switch s.clients[c].phase {
			case asking:
				m.exchange(s, acquire, c)
			case inside:
				id, via := uint8(c+1), s.direct[c].via
				promised := via != 0 && via == s.holder && s.named == id && s.due > 0
				m.exchange(s, acquire, c)
				if promised && s.holder != id {
					return false, FalseLoss
				}
				s.clients[c].phase = leaving
				m.exchange(s, release, c)
			case lost, leaving:
				m.exchange(s, release, c)
			}
			p := s.clients[c].phase
			through = through && (p == idle || p == done || p == crashed)
		}
		if through || *s == before {
			return through, ""
		}
	}
}

// exchange delivers a request and all that follows from it at once.
func (m *directs) exchange(s *directState, k kind, c int) {
	m.send(s, k, c)
	for s.wire[0] != 0 {
		q := s.wire[0]
		s.wire.take(0)
		m.deliver(s, q)
	}
}
