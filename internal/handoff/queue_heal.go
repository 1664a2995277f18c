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

// bound is how many ticks the last living waiter of s may still have to wait: for the rest of a dead holder's lease,
// and for one grant to a dead waiter, however many there are. When that one has run out, the engine has heard of none
// of the others for the time of a claim. A living holder leaves at once here, so its work costs nothing.
func (m *queues) bound(s *queueState) int {
	lease, claim := 0, 0
	if s.holder != 0 && s.clients[s.holder-1].phase == crashed {
		if s.claimed {
			lease = int(s.left)
		} else {
			claim = int(m.claim)
		}
	}
	for _, id := range s.line {
		if id != 0 && s.clients[id-1].phase == crashed {
			claim = int(m.claim)
		}
	}
	return lease + claim
}
