package handoff

import "slices"

// directs is the model of a hand-off from client to client, which takes half a round trip: the engine names the
// waiter that is next to the holder, ahead of the release. The holder tells that waiter itself when it releases, and
// the engine at the same time. The product has no such hand-off; docs/adr/0046 says why. The model is what that
// decision rests on. It is about the rules "Named" and "Told".
//
// A naming is a promise of the engine: until a certain instant the lock goes to nobody else, whatever becomes of the
// hold. The named client trusts the holder's word until that instant, by the same comparison of clocks that a push
// needs. So the word may be late or lost, and it is never confirmed to the holder. A copy of it has no effect of its
// own: only who waits listens, and a later copy is trusted for no longer than an earlier one. What the engine does by
// itself, the push included, stays as it is in queues, whose parts are used here.
type directs struct {
	queues
	breaks, moves uint8 // at most so many: a hold is broken, the last of the queue is put at its front
}

// directClient is what a client knows beyond a queueClient.
type directClient struct {
	next      uint8 // the waiter that the engine has named to it, 0 = none
	age       uint8 // ticks since that naming
	nextToken uint8 // the token that the engine has kept for it
	token     uint8 // of its own hold, if it is the one that makes its successor's
	via       uint8 // the holder that told it of the lock, while the engine has not confirmed it
}

// directState is one situation, with relative times and relative tokens only.
type directState struct {
	queueState
	direct   [maxClients]directClient
	named    uint8            // whom the engine has named last under the present hold, 0 = nobody
	due      uint8            // ticks until that naming is over
	kept     uint8            // the token that is kept for it
	token    uint8            // of the present hold
	seen     uint8            // the largest that anybody had who was inside
	mayYield [maxClients]bool // by client: somebody may overtake it, because it was silent, or by order
	broken   uint8            // whose hold was broken: it may be inside beside another
	breaks   uint8            // so far
	moves    uint8            // so far
}

// The flaws that a step may have shown, in queueState.fault.
const (
	flawPutOut = 1 // as there: a holder was put out
	flawToken  = 2
	flawOrder  = 3
)

// Start is a free lock and idle clients.
func (m *directs) Start() directState { return directState{queueState: m.queues.Start()} }

// Check is that of queues, and finds tokens that fell and waiters that were overtaken. A client whose hold was broken
// counts for nothing: whoever breaks a hold has been told that its owner may go on.
func (m *directs) Check(s directState) Fault {
	believers := 0
	for c := range m.clients {
		if s.clients[c].phase == inside && int(s.broken) != c+1 {
			believers++
		}
	}
	switch {
	case believers > 1:
		return TwoInside
	case s.fault == flawPutOut:
		return FalseLoss
	case s.fault == flawToken:
		return TokenNotNewer
	case s.fault == flawOrder:
		return OutOfOrder
	case s.wire.len() == 0:
		return m.heal(s)
	}
	return ""
}

// Next takes every step that is possible in s.
func (m *directs) Next(s directState, visitAll func(Event, directState)) {
	visit := func(e Event, to directState) {
		to.wire.drop(func(q msg) bool { return m.futile(&to, q) })
		m.tidy(&to)
		visitAll(e, to)
	}
	for c := range m.clients {
		m.act(s, c, visit)
	}
	m.interfere(s, visit)
	s.wire.each(func(i int, q msg) {
		to := s
		to.wire.take(i)
		visit(Event{What: doLose, Msg: q}, to)
		if m.deliver(&to, q) {
			visit(Event{What: doDeliver, Msg: q}, to)
		}
	})
	visit(Event{What: doTick}, m.tick(s))
}

// interfere takes the steps of those who are not clients of the queue.
func (m *directs) interfere(s directState, visit func(Event, directState)) {
	if to := s; s.holder != 0 && s.left > 0 && s.breaks < m.breaks {
		to.breaks++
		if m.breakHold(&to) {
			visit(Event{What: doBreak, Who: s.holder - 1}, to)
		}
	}
	if to := s; s.line[1] != 0 && s.moves < m.moves {
		to.moves++
		visit(Event{What: doMove, Who: to.moveLast() - 1}, to)
	}
}

// deliver lets q, already taken from the wire, take effect. It reports whether there was room for what that sends.
func (m *directs) deliver(s *directState, q msg) bool {
	if q.isRequest() {
		return m.serve(s, q)
	}
	m.receive(s, q)
	return true
}

// tick lets time pass for everybody at once.
func (m *directs) tick(s directState) directState {
	s.queueState = m.queues.tick(s.queueState)
	if m.rules.NamedEnds {
		s.due = remaining(s.due, 1)
	}
	for c := range m.clients {
		d := &s.direct[c]
		if d.next != 0 {
			d.age = min(d.age+1, m.lease)
		}
		if m.rules.ToldUntil && d.age >= m.claim {
			d.next, d.age, d.nextToken = 0, 0, 0 // it is of no use any more
		}
	}
	return s
}

// tidy forgets what makes no difference any more, so that states which are alike are the same.
func (m *directs) tidy(s *directState) {
	for c := range m.clients {
		if s.clients[c].phase != inside {
			s.direct[c] = directClient{}
		}
		s.mayYield[c] = s.mayYield[c] && slices.Contains(s.line[:], uint8(c+1))
	}
	for i, q := range s.wire {
		if q.kind() == yours && s.clients[q.id()-1].phase == inside {
			s.wire[i] = q.with(0, 0) // it has its token
		}
	}
	s.wire.sort()
	if m.rules.NamedToken {
		s.closeGaps()
	}
}
