package handoff

// mayRetain reports whether an Unlock keeps the grant: of A, and not if it was told that B waits.
func (m *retains) mayRetain(i int, p retainRequest) bool { return i != bRequest && !p.wanted }

// retain keeps the grant without an owner. The engine is not told, until a renewal is sent.
func (p *retainRequest) retain() { p.phase, p.cut = retained, notCut }

// leave gives the grant back: its id is dead from now on, and the release is sent until it is confirmed.
func (m *retains) leave(p *retainRequest) {
	was := *p
	*p = retainRequest{phase: leaving, cut: was.cut.known()}
	if !m.rules.ReleaseIsFinal {
		p.trust, p.pass = was.trust, was.pass
	}
}

// known returns what bounds how long others wait if the client crashes now: whether it knows of a shortening.
func (c cut) known() cut {
	if c == cutConfirmed {
		return c
	}
	return notCut
}

// takeOver gives A's retained grant to the next owner. The engine is not told: a renewal will carry the new pass.
func (m *retains) takeOver(s *retainState, i int) {
	p := &s.requests[i]
	p.phase, p.cut = inside, notCut
	p.pass++
	s.locks++
	if !m.rules.TakeoverTrust {
		p.trust = m.lease
	}
}

// send puts a request on the wire, with its pass if it is a renewal. It reports whether there was room.
func (m *retains) send(s *retainState, k kind, i int) bool {
	p := &s.requests[i]
	flags := uint8(0)
	if k == renew || k == shorten {
		flags = p.pass << passShift
	}
	if s.wire.len() >= m.room {
		return false
	}
	if k == shorten {
		m.cutTrust(s, i)
	}
	return s.wire.put(newMsg(k, uint8(i+1), 0, flags), m.room)
}

// cutTrust is what precedes the sending of a shortening: from this instant on A trusts the grant for the short lease
// only, and the answers to all that it sent earlier are older.
func (m *retains) cutTrust(s *retainState, i int) {
	p := &s.requests[i]
	p.cut = cutSent
	if m.rules.ShortenFirst {
		p.trust = min(p.trust, m.shortLease())
	}
	for j, q := range s.wire {
		if q != 0 && q.id() == uint8(i+1) && m.isDated(q.kind()) {
			s.wire[j] = q | flagOlder
		}
	}
	s.wire.sort()
}

// isDated reports whether it matters when a message of that kind, or the request that it answers, was sent.
func (m *retains) isDated(k kind) bool {
	switch k {
	case acquire, renew, shorten, yours, renewed, shortened:
		return true
	}
	return false
}

// shortLease is how long a retained grant lasts after its renewal.
func (m *retains) shortLease() uint8 {
	if !m.rules.ShortRetention {
		return m.lease
	}
	return m.short
}

// receive lets an answer, or the word that B waits, take effect on its request.
func (m *retains) receive(s *retainState, q msg) {
	p := &s.requests[q.id()-1]
	switch k := q.kind(); {
	case k == ended && p.phase == leaving:
		*p = retainRequest{phase: done}
	case k == yours && p.phase == asking:
		if trust := m.trustOf(q); trust > 0 {
			p.phase, p.trust = inside, trust
		}
	case k == notYours && p.phase == inside:
		p.phase, p.trust = lost, 0
	case k == notYours && p.phase == retained:
		m.leave(p)
	case p.phase == inside || p.phase == retained:
		m.extend(p, q)
	}
	if q.kind() == wanted || q.lag()&flagWanted != 0 {
		m.hearWanted(p)
	}
}

// extend is receive for an answer that may give more time.
func (m *retains) extend(p *retainRequest, q msg) {
	if !m.isDated(q.kind()) {
		return
	}
	older := q.lag()&flagOlder != 0
	if q.kind() == shortened {
		if p.cut == cutSent && !older {
			p.cut = cutConfirmed
		}
		if !m.rules.ShortenFirst {
			p.trust = min(p.trust, m.trustOf(q))
		}
	}
	if !older || !m.rules.IgnoreOlder {
		p.trust = max(p.trust, m.trustOf(q))
	}
}

// trustOf is how long the answer q may be trusted, counted from the sending of its request.
func (m *retains) trustOf(q msg) uint8 {
	if q.kind() == shortened {
		return remaining(m.shortLease(), q.age())
	}
	return remaining(m.lease, q.age())
}

// hearWanted lets A know that B waits: it gives a retained grant back, and remembers it otherwise. It may hear of B
// before it hears of its own grant.
func (m *retains) hearWanted(p *retainRequest) {
	switch p.phase {
	case retained:
		m.leave(p)
	case asking, inside:
		p.wanted = m.rules.WantedKept
	}
}

// futile reports whether q can have no effect any more.
func (m *retains) futile(s *retainState, q msg) bool {
	p, known := s.requests[q.id()-1], s.tomb[q.id()-1]
	has := p.phase == inside || p.phase == retained
	switch k := q.kind(); k {
	case acquire, renew, shorten:
		return known
	case release:
		return known && p.phase != leaving
	case ended:
		return p.phase != leaving
	case notYours:
		return !has
	case wanted:
		return !m.isNews(p)
	case yours:
		return !has && p.phase != asking || m.extendsNothing(p, q)
	}
	// An answer to a renewal.
	return !has || m.extendsNothing(p, q) && (q.lag()&flagWanted == 0 || !m.isNews(p))
}

// isNews reports whether A makes anything of the word that B waits.
func (m *retains) isNews(p retainRequest) bool {
	switch p.phase {
	case retained:
		return true
	case asking, inside:
		return m.rules.WantedKept && !p.wanted
	}
	return false
}

// extendsNothing reports whether the date of an answer makes it worthless.
func (m *retains) extendsNothing(p retainRequest, q msg) bool {
	older := q.lag()&flagOlder != 0
	switch {
	case q.kind() == shortened && (!m.rules.ShortenFirst || p.cut == cutSent && !older):
		return false
	case older && m.rules.IgnoreOlder:
		return true
	}
	return m.trustOf(q) == 0
}
