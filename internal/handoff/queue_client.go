package handoff

// receive lets an answer or a push take effect on its client.
func (m *queues) receive(s *queueState, q msg) {
	c := int(q.id()) - 1
	p := &s.clients[c]
	switch p.phase {
	case asking:
		m.receiveAsking(p, q)
	case inside:
		m.receiveInside(s, p, q)
	case lost, leaving:
		if q.kind() == ended {
			*p = queueClient{phase: done}
		}
	}
}

// receiveAsking is receive for a client that asks or waits.
func (m *queues) receiveAsking(p *queueClient, q msg) {
	switch q.kind() {
	case queued:
		p.lag = m.lagOf(q)
	case push:
		p.enter(m.trustPush(p, q))
	case yours:
		p.enter(remaining(m.lease, q.age()))
	}
}

// receiveInside is receive for a client that trusts the lock.
func (m *queues) receiveInside(s *queueState, p *queueClient, q msg) {
	switch k := q.kind(); {
	case k == queued && !m.rules.IgnoreStale:
		*p = queueClient{phase: asking, lag: q.lag()}
		if s.holder == q.id() && s.left > 0 {
			s.fault = 1
		}
	case k == yours:
		p.enter(remaining(m.lease, q.age()))
	}
}

// enter makes the client trust the lock for some ticks, if any are left. Otherwise it goes on waiting, and its next
// heartbeat asks what is true.
func (p *queueClient) enter(trust uint8) {
	if trust > 0 {
		p.phase, p.trust, p.lag = inside, max(p.trust, trust), 0
	}
}

// trustPush is the deadline of a pushed grant: off + s1 + H, on a clock on which the push is q.age old.
func (m *queues) trustPush(p *queueClient, q msg) uint8 {
	whole := m.claim
	if !m.rules.TrustClaim {
		whole = m.lease
	}
	switch {
	case p.lag == unknown:
		return 0
	case !m.rules.TrustGrant:
		return whole
	case !m.rules.TrustOffset: // lag is then how late the answer came in
		return remaining(whole+p.lag, q.age())
	}
	return remaining(whole, q.age()+p.lag)
}

// lagOf is what the client stores of an answer, to compare the clocks by.
func (m *queues) lagOf(q msg) uint8 {
	if !m.rules.TrustOffset {
		return q.age()
	}
	if q.lag() >= m.claim {
		return unknown
	}
	return q.lag()
}
