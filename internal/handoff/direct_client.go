package handoff

// act takes the steps that c may take on its own.
func (m *directs) act(s directState, c int, visit func(Event, directState)) {
	step := func(what action, k kind, next phase) {
		to := s
		if k != noMessage && !m.send(&to, k, c) {
			return
		}
		p := &to.clients[c]
		if p.phase = next; next == leaving {
			p.trust, p.lag = 0, 0
		}
		visit(Event{What: what, Who: uint8(c)}, to)
	}
	switch p := s.clients[c].phase; p {
	case idle:
		step(doStart, acquire, asking)
	case asking:
		step(doAskAgain, acquire, asking)
		step(doCancel, release, leaving)
	case inside:
		step(doAskAgain, acquire, inside)
		step(doUnlock, release, leaving)
	case leaving, lost:
		step(doReleaseAgain, release, p)
	}
	if p := s.clients[c].phase; p != crashed && p != done && m.crashed(&s.queueState) < m.crashes {
		to := s
		to.clients[c], to.direct[c] = queueClient{phase: crashed}, directClient{}
		visit(Event{What: doCrash, Who: uint8(c)}, to)
	}
}

// send puts a request on the wire, and with a release the word to the successor. It reports whether there was room. A
// request of a client that was told of the lock says which holder told it.
func (m *directs) send(s *directState, k kind, c int) bool {
	d := s.direct[c]
	q := newMsg(k, uint8(c+1), 0, 0)
	if k == acquire {
		q = q.with(d.via, 0)
	}
	if !s.wire.put(q, m.room) {
		return false
	}
	if k != release || d.next == 0 {
		return true
	}
	age, token := d.age, d.nextToken
	if !m.rules.ToldUntil {
		age = 0
	}
	if !m.rules.NamedToken {
		token = d.token + 1
	}
	return s.wire.put(newMsg(told, d.next, age, 0).with(uint8(c+1), token), len(s.wire))
}

// receive lets an answer, a push or another client's word take effect on its client.
func (m *directs) receive(s *directState, q msg) {
	c := int(q.id()) - 1
	p, d := &s.clients[c], &s.direct[c]
	was := p.phase
	switch k := q.kind(); {
	case k == named:
		if was == inside && (d.next == 0 || d.age >= q.age()) {
			d.next, d.age, d.nextToken = q.peer(), q.age(), q.token()
		}
		return
	case k == told && (was == asking || was == leaving && !m.rules.LeftIsFinal):
		if p.enter(m.trustTold(p, q)); p.phase == inside {
			d.via = q.peer()
		}
	case k == told:
	case k == gone && (was == asking || was == inside): // its hold was broken
		*p = queueClient{phase: lost}
	default:
		m.queues.receive(&s.queueState, q)
		if k == yours {
			d.via = 0
		}
	}
	if p.phase == inside && was != inside {
		m.entered(s, c, q.token())
	}
}

// trustTold is the deadline of a grant that another client tells of: the instant that the engine has named, which is
// the claim time after the naming.
func (m *directs) trustTold(p *queueClient, q msg) uint8 {
	if !m.rules.ToldUntil {
		return m.claim
	}
	return m.trustPush(p, q)
}

// entered notes the token of who is inside from now on, and looks at it, and at who was overtaken.
func (m *directs) entered(s *directState, c int, token uint8) {
	if !m.rules.NamedToken {
		s.direct[c].token = token
	}
	if s.broken == uint8(c+1) {
		return
	}
	if token <= s.seen {
		s.fault = flawToken
	}
	s.seen = max(s.seen, token)
	if s.holder != uint8(c+1) && !s.tomb[c] {
		m.overtakes(s, uint8(c+1))
	}
}

// futile reports whether q can have no effect any more.
func (m *directs) futile(s *directState, q msg) bool {
	p := s.clients[q.id()-1].phase
	tooLate := m.rules.ToldUntil && q.age() >= m.claim
	switch q.kind() {
	case named:
		return tooLate || p != asking && p != inside
	case gone:
		return p != asking && p != inside
	case told:
		return tooLate || p != asking && (p != leaving || m.rules.LeftIsFinal)
	}
	return m.queues.futile(&s.queueState, q)
}
