package handoff

// leave is what sending a first release does to the client: it waits for the answer.
func (m *leases) leave(c int) func(*leaseState, *leaseClient) {
	return func(to *leaseState, p *leaseClient) {
		p.phase, p.trust = leaving, 0
		if !m.rules.RetryUntilKnown {
			m.finish(to, c)
		}
	}
}

// finish ends c's present request for good.
func (m *leases) finish(s *leaseState, c int) {
	p := &s.clients[c]
	*p = leaseClient{phase: idle, req: p.req + 1}
	if int(p.req) == m.requests {
		p.phase = done
	}
}

// receive lets the answer q take effect on the client that it is for. Answers to earlier requests are not its business.
func (m *leases) receive(s *leaseState, q msg) {
	c := m.owner(q.id())
	p := &s.clients[c]
	if m.id(s, c) != q.id() {
		return
	}
	switch k, trust := q.kind(), m.trustOf(q); p.phase {
	case asking:
		m.receiveAsking(s, c, k, trust)
	case inside:
		p.receiveInside(k, trust)
	case lost, leaving:
		m.receiveOutside(s, c, k, trust)
	}
}

// trustOf is how long the answer q may be trusted.
func (m *leases) trustOf(q msg) uint8 {
	if !m.rules.TrustSent {
		return m.lease
	}
	return remaining(m.lease, q.age())
}

// receiveAsking is receive for a client that asks.
func (m *leases) receiveAsking(s *leaseState, c int, k kind, trust uint8) {
	switch p := &s.clients[c]; {
	case k == held:
		m.refused(s, c)
	case k == yours && trust > 0:
		p.phase, p.trust = inside, trust
	}
}

// receiveInside is receive for a client that trusts the lock.
func (p *leaseClient) receiveInside(k kind, trust uint8) {
	switch k {
	case yours, renewed:
		p.trust = max(p.trust, trust)
	case notYours:
		p.phase, p.trust = lost, 0
	}
}

// receiveOutside is receive for a client that has lost the lock or is giving it back.
func (m *leases) receiveOutside(s *leaseState, c int, k kind, trust uint8) {
	switch p := &s.clients[c]; {
	case k == ended:
		m.finish(s, c)
	case p.phase == lost && k == renewed && !m.rules.LossIsFinal && trust > 0:
		p.phase, p.trust = inside, trust
	}
}
