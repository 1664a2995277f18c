package handoff

import "slices"

// serve is the engine's side: one atomic script per request. It reports whether there was room for what it sends.
func (m *queues) serve(s *queueState, q msg) bool {
	if q.kind() == release {
		return m.end(s, q.id())
	}
	id, c := q.id(), q.id()-1
	if s.tomb[c] {
		return true // the answer is "gone", which tells a client that has left nothing
	}
	refresh := slices.Contains(s.line[:], id)
	s.heartbeats[c] = m.heartbeat
	if s.holder == id && s.left > 0 {
		return m.own(s, q)
	}
	if refresh && !m.rules.RepairingHeartbeat {
		return s.wire.put(m.queuedAnswer(q), len(s.wire))
	}
	// Evict before looking for the caller's place: it may itself be what is evicted and put back.
	m.evict(s)
	if !slices.Contains(s.line[:], id) {
		s.join(id, false)
	}
	next := m.next(s)
	switch {
	case s.holder != 0 || next == 0:
		return s.wire.put(m.queuedAnswer(q), len(s.wire))
	case next == id:
		s.leave(id)
		return m.own(s, q)
	}
	return m.grant(s, next) && s.wire.put(m.queuedAnswer(q), len(s.wire))
}

// own makes the hold the asker's for a whole lease, and says so: the asker will learn of it at the latest by asking
// again.
func (m *queues) own(s *queueState, q msg) bool {
	s.holder, s.left, s.claimed = q.id(), m.lease, true
	s.heartbeats[q.id()-1], s.put[q.id()-1] = 0, false // they matter again when it queues again
	return s.wire.put(newMsg(yours, q.id(), q.age(), 0), len(s.wire))
}

// queuedAnswer carries the engine's instant, as the lag behind the instant of sending. Its age is only looked at by
// clients that do it wrong.
func (m *queues) queuedAnswer(q msg) msg {
	if !m.rules.TrustOffset {
		return newMsg(queued, q.id(), 0, 0)
	}
	return newMsg(queued, q.id(), m.lease, q.age()) // the largest age stays as it is
}

// end is the release script: it takes away whatever id has, refuses it from now on, and serves the next.
func (m *queues) end(s *queueState, id uint8) bool {
	s.tomb[id-1] = m.rules.Tombstones
	s.leave(id)
	s.heartbeats[id-1], s.put[id-1] = 0, false
	if s.holder == id {
		s.free()
	}
	m.evict(s)
	if s.holder == 0 {
		if next := m.next(s); next != 0 && !m.grant(s, next) {
			return false
		}
	}
	return s.wire.put(newMsg(ended, id, 0, 0), len(s.wire))
}

// evict ends a hold whose time is over. A grant that nobody claimed goes back to the head of the queue if its waiter
// lives, because the push may have been lost; the next time to the tail, so that it cannot block the others.
func (m *queues) evict(s *queueState) {
	if s.holder == 0 || s.left > 0 {
		return
	}
	id, claimed := s.holder, s.claimed
	s.free()
	if claimed || s.heartbeats[id-1] == 0 {
		return
	}
	s.join(id, !s.put[id-1])
	s.put[id-1] = true
}

// next returns the first waiter that the engine has heard of within the time of a claim, or 0. It drops those before it
// that no longer live, and passes over the others, who keep their places.
func (m *queues) next(s *queueState) uint8 {
	for i := 0; i < len(s.line) && s.line[i] != 0; {
		switch id := s.line[i]; {
		case s.heartbeats[id-1] == 0:
			s.leave(id)
		case m.rules.PassOverSilent && s.heartbeats[id-1]+m.claim <= m.heartbeat:
			i++
		default:
			return id
		}
	}
	return 0
}

// grant makes the waiter the holder and tells it by a push.
func (m *queues) grant(s *queueState, id uint8) bool {
	s.leave(id)
	s.holder, s.left, s.claimed = id, m.claim, false
	if !m.rules.ShortClaim {
		s.left = m.lease
	}
	return s.wire.put(newMsg(push, id, 0, 0), len(s.wire))
}

func (s *queueState) free() { s.holder, s.left, s.claimed = 0, 0, false }

// join adds id to the line, at its front or its end.
func (s *queueState) join(id uint8, front bool) {
	if front {
		copy(s.line[1:], s.line[:])
		s.line[0] = id
		return
	}
	s.line[slices.Index(s.line[:], 0)] = id
}

// leave takes id out of the line if it is there.
func (s *queueState) leave(id uint8) {
	if i := slices.Index(s.line[:], id); i >= 0 {
		copy(s.line[i:], s.line[i+1:])
		s.line[len(s.line)-1] = 0
	}
}
