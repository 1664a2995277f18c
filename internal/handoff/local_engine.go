package handoff

// serve is the engine's side of locals: it lets request q take effect and returns the answer.
func (m *locals) serve(s *localState, q msg) msg {
	i := q.id() - 1
	answer := func(k kind) msg { return newMsg(k, q.id(), q.age(), 0) }
	switch q.kind() {
	case acquire:
		switch {
		case s.tomb[i]:
			return answer(gone)
		case s.left[i] > 0 || m.admits(s, int(i)):
			s.left[i] = m.lease
			return answer(yours)
		}
		return answer(held)
	case renew:
		if s.left[i] == 0 {
			return answer(notYours)
		}
		s.left[i] = m.lease
		return answer(renewed)
	default:
		s.left[i], s.tomb[i] = 0, true
		return newMsg(ended, q.id(), 0, 0)
	}
}

// admits reports whether the engine grants call c beside the holds that it has: to the same owner if that may re-enter.
// It knows a hold's owner as the one that asked for it; of a local pass it has not heard.
func (m *locals) admits(s *localState, c int) bool {
	reenters := ownerOf(c) == ownerOf(first) && (m.named || !m.rules.NoReentry)
	for d, left := range s.left {
		if left > 0 && !(reenters && ownerOf(d) == ownerOf(c)) {
			return false
		}
	}
	return true
}

// heal lets the faults stop in s, in which nothing is under way. Every message arrives at once, who is inside unlocks,
// who waits polls; but a caller who was told that its lock is lost may hang and never unlock, and nobody may have to
// wait for that. Then the longest wait is a lease.
func (m *locals) heal(s localState) Fault {
	for range m.lease {
		if m.settle(&s) {
			return ""
		}
		s = m.tick(s)
	}
	if !m.settle(&s) {
		return LostWaiter
	}
	return ""
}

// settle lets each call do what it can without time passing, until nothing changes. It reports whether nobody waits.
func (m *locals) settle(s *localState) bool {
	for {
		before := *s
		served := true
		for c := range s.calls {
			switch s.calls[c].phase {
			case asking:
				m.send(s, acquire, c)
			case inside:
				if m.mayPass(s, c) {
					m.pass(s)
					break
				}
				m.leave(s, c)
				m.send(s, release, c)
			case leaving:
				m.send(s, release, c)
			}
			p := s.calls[c].phase
			served = served && p != asking && p != queuing
		}
		if served || *s == before {
			return served
		}
	}
}

// send delivers a request and its answer at once.
func (m *locals) send(s *localState, k kind, c int) {
	m.deliver(s, newMsg(k, s.calls[c].hold, 0, 0))
	for s.wire[0] != 0 {
		q := s.wire[0]
		s.wire.take(0)
		m.deliver(s, q)
	}
}
