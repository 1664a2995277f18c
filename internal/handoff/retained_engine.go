package handoff

// serve is the engine's side of retains: it lets request q take effect and returns the message that this causes, or 0.
func (m *retains) serve(s *retainState, q msg) msg {
	switch id := q.id(); q.kind() {
	case acquire:
		return m.acquire(s, q)
	case release:
		s.tomb[id-1] = true
		s.queued = s.queued && id != bRequest+1
		if s.holder == id {
			s.free()
		}
		return newMsg(ended, id, 0, 0)
	default:
		return m.renew(s, q)
	}
}

// acquire grants a free lock, to B before A if B is in the queue. Otherwise B is queued, and in the same step A is told
// that its lock is wanted. That the lock is taken tells a client that asks again anyway nothing, so it is not said.
func (m *retains) acquire(s *retainState, q msg) msg {
	id := q.id()
	isB := id == bRequest+1
	first := !s.queued
	switch {
	case s.tomb[id-1]:
		return 0
	case s.holder == id:
		m.lengthen(s, 0)
		return answerTo(q, yours, 0)
	case s.holder == 0 && (isB || !s.queued):
		s.holder, s.left, s.queued = id, m.lease, false
		s.requests[id-1].cut = notCut // what a dead client knew was about an earlier hold
		return answerTo(q, yours, 0)
	case !isB:
		return 0
	}
	s.queued = true
	if s.holder != 0 && (first || m.rules.WantedRepeated) {
		return newMsg(wanted, s.holder, 0, 0)
	}
	return 0
}

// renew gives a hold its whole lease from now. A shortening gives it the short one, also if it had more before.
func (m *retains) renew(s *retainState, q msg) msg {
	if s.holder != q.id() {
		return newMsg(notYours, q.id(), 0, 0)
	}
	pass := q.lag() >> passShift
	var flags uint8
	if s.queued && m.rules.WantedAnswered {
		flags = flagWanted
	}
	if q.kind() == renew {
		m.lengthen(s, pass)
		return answerTo(q, renewed, flags)
	}
	if pass < s.pass && m.rules.RetainedPass {
		s.left = max(s.left, m.shortLease()) // a late one: somebody holds the lock again
	} else {
		s.left, s.short = m.shortLease(), true
	}
	s.pass = max(s.pass, pass)
	return answerTo(q, shortened, flags)
}

// lengthen gives a hold its whole lease from now. It does so for an earlier pass than the engine knows, too: the client
// counts on the answer unless it has shortened the grant since. But when the engine knows of a retention, then whatever
// comes for that pass or an earlier one was sent before, and its client counts on nothing.
func (m *retains) lengthen(s *retainState, pass uint8) {
	if s.short && pass <= s.pass && m.rules.StaysShort {
		return
	}
	s.left, s.pass, s.short = m.lease, max(s.pass, pass), false
}

// answerTo is an answer, as old as its request.
func answerTo(q msg, k kind, flags uint8) msg {
	return newMsg(k, q.id(), q.age(), q.lag()&flagOlder|flags)
}

func (s *retainState) free() { s.holder, s.left, s.pass, s.short = 0, 0, 0, false }
