package handoff

import "slices"

// serve is the engine's side: one atomic script per request. It reports whether there was room for what it sends.
func (m *directs) serve(s *directState, q msg) bool {
	if q.kind() == release {
		return m.end(s, q.id())
	}
	id := q.id()
	if s.tomb[id-1] {
		return s.broken != id || s.wire.put(newMsg(gone, id, 0, 0), len(s.wire))
	}
	s.heartbeats[id-1] = m.heartbeat
	if s.holder == id && s.left > 0 {
		return m.own(s, id, q)
	}
	if m.proves(s, q) {
		if s.clients[s.holder-1].phase == inside && s.broken != s.holder {
			s.fault = flawPutOut
		}
		m.award(s, id)
		return m.own(s, id, q)
	}
	m.evict(&s.queueState)
	if !slices.Contains(s.line[:], id) {
		s.join(id, false)
		s.mayYield[id-1] = false
	}
	switch next := m.heir(s, m.rules.NamedAtExpiry); {
	case s.holder != 0 || next == 0:
		return s.wire.put(m.queuedAnswer(q), len(s.wire)) && m.name(s, id)
	case next == id:
		m.award(s, id)
		return m.own(s, id, q)
	default:
		return m.grant(s, next) && s.wire.put(m.queuedAnswer(q), len(s.wire))
	}
}

// own makes the hold the asker's for a whole lease, and says so.
func (m *directs) own(s *directState, id uint8, q msg) bool {
	s.left, s.claimed = m.lease, true
	s.heartbeats[id-1], s.put[id-1] = 0, false
	return s.wire.put(newMsg(yours, id, q.age(), 0).with(0, s.token), len(s.wire))
}

// proves reports whether a request says that the holder has told its client of the lock. Then that hold is over,
// although the engine has heard nothing of it: the holder may have died since.
func (m *directs) proves(s *directState, q msg) bool {
	switch via := q.peer(); {
	case via == 0 || s.holder == 0 || !m.rules.ClaimProves:
		return false
	case !m.rules.ClaimOfHold:
		return true
	default:
		return s.holder == via && s.named == q.id() && s.due > 0
	}
}

// end is the release script.
func (m *directs) end(s *directState, id uint8) bool {
	s.tomb[id-1] = true
	s.leave(id)
	s.heartbeats[id-1], s.put[id-1] = 0, false
	if s.named == id {
		s.unname() // it has promised not to listen to the holder any more
	}
	if s.holder == id {
		s.free()
	}
	return m.evictAndGrant(s, m.rules.NamedAtRelease) && s.wire.put(newMsg(ended, id, 0, 0), len(s.wire))
}

// breakHold ends the present hold, which its client hears by and by.
func (m *directs) breakHold(s *directState) bool {
	s.broken, s.tomb[s.holder-1] = s.holder, true
	s.free()
	return m.evictAndGrant(s, m.rules.NamedAtBreak)
}

// evictAndGrant serves the next waiter if the lock is free now.
func (m *directs) evictAndGrant(s *directState, keep bool) bool {
	m.evict(&s.queueState)
	if s.holder != 0 {
		return true
	}
	next := m.heir(s, keep)
	return next == 0 || m.grant(s, next)
}

// heir returns who gets a lock that is free: the named one while its naming lasts, or else whoever is next.
func (m *directs) heir(s *directState, keep bool) uint8 {
	if s.due > 0 && keep {
		return s.named
	}
	return m.next(&s.queueState)
}

// grant makes the waiter the holder and tells it by a push.
func (m *directs) grant(s *directState, id uint8) bool {
	m.overtakes(s, id)
	m.award(s, id)
	s.left = m.claim
	return s.wire.put(newMsg(push, id, 0, 0).with(0, s.token), len(s.wire))
}

// award makes the waiter the holder, with the token that was kept for it or a new one.
func (m *directs) award(s *directState, id uint8) {
	s.leave(id)
	token := s.kept
	if s.named != id || s.due == 0 || !m.rules.NamedToken {
		token = s.mint()
	}
	s.holder, s.claimed, s.token = id, false, token
	s.unname()
}

func (s *directState) free() {
	s.queueState.free()
	s.token = 0
}

func (s *directState) unname() { s.named, s.due, s.kept = 0, 0, 0 }

// name tells the holder of the asker if that is next, and keeps the lock and a token for it from now on. The client
// that is named asks, so the engine has heard of it, and will not pass it over while the naming lasts.
func (m *directs) name(s *directState, id uint8) bool {
	switch {
	case s.holder == 0 || s.left == 0 || !s.claimed && m.rules.NamedClaimed:
		return true
	case s.due > 0 && s.named != id && m.rules.NamedOne:
		return true
	case m.rules.NamedNext && m.next(&s.queueState) != id:
		return true
	}
	if s.named != id || s.due == 0 {
		if s.kept = 0; m.rules.NamedToken {
			s.kept = s.mint()
		}
	}
	s.named, s.due = id, m.claim
	m.passOver(s, id)
	return s.wire.put(newMsg(named, s.holder, 0, 0).with(id, s.kept), len(s.wire))
}

// passOver notes that the waiters before id, which have been silent for long, may be overtaken by it.
func (m *directs) passOver(s *directState, id uint8) {
	for _, before := range s.before(id) {
		if m.isSilent(s, before) {
			s.mayYield[before-1] = true
		}
	}
}

// overtakes looks whether id, which gets the lock, overtakes anybody who did not deserve it.
func (m *directs) overtakes(s *directState, id uint8) {
	for _, before := range s.before(id) {
		if !m.isSilent(s, before) && !s.mayYield[before-1] {
			s.fault = flawOrder
		}
	}
}

func (m *directs) isSilent(s *directState, id uint8) bool {
	heartbeat := s.heartbeats[id-1]
	return heartbeat == 0 || heartbeat+m.claim <= m.heartbeat
}

// before returns those who stand before id in the line, which are all if it does not stand there.
func (s *directState) before(id uint8) []uint8 {
	n := 0
	for n < len(s.line) && s.line[n] != 0 && s.line[n] != id {
		n++
	}
	return s.line[:n]
}

// moveLast puts the last of the line at its front, as an upgrade is, and returns it. All others may be overtaken by
// it, and it by the one that is named already.
func (s *directState) moveLast() uint8 {
	last := 0
	for i, id := range s.line {
		if id != 0 {
			last = i
			s.mayYield[id-1] = true
		}
	}
	id := s.line[last]
	s.leave(id)
	s.join(id, true)
	return id
}
