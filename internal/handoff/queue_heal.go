package handoff

// heal lets the faults stop in s, in which nothing is under way, and says what is wrong with what follows: every client
// that lives asks again until it has been inside and has left, every message arrives at once, and time passes between
// two rounds. A waiter must be served within the bound that the protocol states, and nobody may hold for a client that
// has left.
func (m *queues) heal(s queueState) Fault {
	if m.orphaned(&s) {
		return Orphan
	}
	for range m.bound(&s) {
		if m.settle(&s) {
			break
		}
		s = m.tick(s)
	}
	switch {
	case !m.settle(&s):
		return LostWaiter
	case m.orphaned(&s):
		return Orphan
	}
	return ""
}

// orphaned reports whether the engine has the lock for a client that is through.
func (m *queues) orphaned(s *queueState) bool {
	return s.holder != 0 && s.left > 0 && s.clients[s.holder-1].phase == done
}

// settle lets each client do what it can without time passing, until nothing changes. It reports whether all are
// through.
func (m *queues) settle(s *queueState) bool {
	for {
		before := *s
		through := true
		for c := range m.clients {
			switch s.clients[c].phase {
			case asking:
				m.send(s, acquire, c)
			case inside:
				s.clients[c].phase = leaving
				m.send(s, release, c)
			case lost, leaving:
				m.send(s, release, c)
			}
			p := s.clients[c].phase
			through = through && (p == idle || p == done || p == crashed)
		}
		if through || *s == before {
			return through
		}
	}
}

// send delivers a request and all that follows from it at once.
func (m *queues) send(s *queueState, k kind, c int) {
	m.deliver(s, newMsg(k, uint8(c+1), 0, 0))
	for s.wire[0] != 0 {
		q := s.wire[0]
		s.wire.take(0)
		m.deliver(s, q)
	}
}

// bound is how many ticks the last living waiter of s may still have to wait: until a dead holder's time is over, and
// for one grant to a dead waiter if the engine then still counts on one. While that grant lasts it hears of none of the
// other dead, so it counts on none when it is over, however many there are. A living holder leaves at once here, so its
// work costs nothing.
//
// The time runs from when the last was heard of: a waiter that dies while another dead one is granted the lock, or
// whose last sign of life comes so late, costs a claim of its own. The engine cannot tell the one from the other.
func (m *queues) bound(s *queueState) int {
	wait := uint8(0)
	if s.holder != 0 && s.clients[s.holder-1].phase == crashed {
		if wait = s.left; !s.claimed {
			wait = min(wait, m.claim)
		}
	}
	for _, id := range s.line {
		if id != 0 && s.clients[id-1].phase == crashed && m.countsOn(s.heartbeats[id-1], wait) {
			return int(wait + m.claim)
		}
	}
	return int(wait)
}

// countsOn reports whether the engine will still grant the lock, some ticks from now, to a waiter whose place is taken
// away after heartbeat more if nothing is heard of it.
func (m *queues) countsOn(heartbeat, ticks uint8) bool {
	return heartbeat > ticks && heartbeat-ticks+m.claim > m.heartbeat
}
