package handoff

// serve is the engine's side: it lets request q take effect and returns the answer. An expired hold is gone already:
// the tick that ended it has removed it, which is what every script does first.
func (m *leases) serve(s *leaseState, q msg) msg {
	answer := func(k kind) msg { return newMsg(k, q.id(), q.age(), 0) }
	switch q.kind() {
	case acquire:
		switch {
		case s.tomb[q.id()] > 0:
			return answer(gone)
		case s.holder == 0 || s.holder == q.id():
			s.holder, s.left = q.id(), m.lease
			return answer(yours)
		}
		return answer(held)
	case renew:
		if !m.matches(s, q.id()) {
			return answer(notYours)
		}
		s.left = m.lease
		return answer(renewed)
	default:
		m.end(s, q.id())
		return newMsg(ended, q.id(), 0, 0)
	}
}

// matches reports whether a renewal or release of id is about the present hold.
func (m *leases) matches(s *leaseState, id uint8) bool {
	if s.holder == 0 {
		return false
	}
	return s.holder == id || !m.rules.HoldIDs && m.owner(s.holder) == m.owner(id)
}

// end frees the lock if it is id's, and refuses copies of id's acquire from now on: one may be under way although the
// hold is released, because its outcome was unknown when it was sent again.
func (m *leases) end(s *leaseState, id uint8) {
	if m.matches(s, id) {
		s.holder, s.left = 0, 0
	}
	if !m.rules.Tombstones {
		return
	}
	s.tomb[id] = m.horizon
	if !m.rules.LongTombstones {
		s.tomb[id]--
	}
}
