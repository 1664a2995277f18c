package handoff

import (
	"fmt"
	"strings"
)

// queues is the model of the hand-off: clients queue in the engine, wait with heartbeats, and are granted the lock by a
// push that they must claim. Each client wants the lock once. It is about rules 3c, 4, 5 and 6, and about what rules 3a
// and 3d mean to a waiter.
type queues struct {
	rules     Rules
	clients   int
	crashes   int   // at most so many
	lease     uint8 // ticks that a claimed hold lasts
	claim     uint8 // ticks that a pushed grant lasts
	heartbeat uint8 // ticks that a waiter lives without a heartbeat
	room      int   // messages under way at once
}

// unknown is the lag of a client that has no earlier answer to compare clocks by: such a client confirms a push by a
// round trip. So does one whose lag is a whole claim, which is why larger lags need not be told apart.
const unknown = 15

// queueClient is one client. Its request id is its place plus one.
type queueClient struct {
	phase phase
	trust uint8 // ticks until its local deadline
	lag   uint8 // from an earlier answer: how long before the engine's instant its request was sent; or unknown
}

// queueState is one situation, with relative times only.
type queueState struct {
	clients    [maxClients]queueClient
	holder     uint8             // request id, 0 = none
	left       uint8             // ticks until the engine ends the hold
	claimed    bool              // the holder has confirmed it
	line       [maxClients]uint8 // ids in order of arrival, 0 = end
	heartbeats [maxClients]uint8 // by client: ticks until its place is taken away
	put        [maxClients]bool  // by client: was put back to the head of the queue once
	tomb       [maxClients]bool  // by client: its id is refused
	wire       wire
	fault      uint8 // 1 = a holder was put out by a stale answer
}

// Start is a free lock and idle clients.
func (m *queues) Start() queueState {
	var s queueState
	for c := range m.clients {
		s.clients[c].lag = unknown
	}
	return s
}

// Check finds two clients inside and a holder put out. What needs time to show, which is orphans and lost waiters, is
// found by letting the faults stop in every state in which nothing is under way.
func (m *queues) Check(s queueState) Fault {
	believers := 0
	for c := range m.clients {
		if s.clients[c].phase == inside {
			believers++
		}
	}
	switch {
	case believers > 1:
		return TwoInside
	case s.fault != 0:
		return FalseLoss
	case s.wire.len() == 0:
		return m.heal(s)
	}
	return ""
}

// Next takes every step that is possible in s.
func (m *queues) Next(s queueState, visitAll func(Event, queueState)) {
	visit := func(e Event, to queueState) {
		to.wire.drop(func(q msg) bool { return m.futile(&to, q) })
		visitAll(e, to)
	}
	for c := range m.clients {
		m.act(s, c, visit)
	}
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

// deliver lets q, already taken from the wire, take effect. It reports whether there was room for what that sends.
func (m *queues) deliver(s *queueState, q msg) bool {
	if q.isRequest() {
		return m.serve(s, q)
	}
	m.receive(s, q)
	return true
}

// tick lets time pass for everybody at once. The engine only notices at its next script that a hold has ended.
func (m *queues) tick(s queueState) queueState {
	s.left = remaining(s.left, 1)
	tickDown(s.heartbeats[:])
	s.wire.tick(m.lease, 0)
	for c := range m.clients {
		p := &s.clients[c]
		if p.trust = remaining(p.trust, 1); p.phase == inside && p.trust == 0 {
			p.phase = lost
		}
	}
	return s
}

// act takes the steps that c may take on its own.
func (m *queues) act(s queueState, c int, visit func(Event, queueState)) {
	step := func(what action, k kind, next phase) {
		to := s
		if k != noMessage && !to.wire.put(newMsg(k, uint8(c+1), 0, 0), m.room) {
			return
		}
		p := &to.clients[c]
		if p.phase = next; next == leaving || next == done {
			p.trust, p.lag = 0, 0
		}
		visit(Event{What: what, Who: uint8(c)}, to)
	}
	switch p := s.clients[c].phase; p {
	case idle:
		step(doStart, acquire, asking)
	case asking:
		step(doAskAgain, acquire, asking)
		if m.rules.UndoCancelled {
			step(doCancel, release, leaving)
		} else {
			step(doCancel, noMessage, done)
		}
	case inside:
		step(doAskAgain, acquire, inside)
		step(doUnlock, release, leaving)
	case leaving, lost:
		step(doReleaseAgain, release, p)
	}
	if p := s.clients[c].phase; p != crashed && p != done && m.crashed(&s) < m.crashes {
		to := s
		to.clients[c] = queueClient{phase: crashed}
		visit(Event{What: doCrash, Who: uint8(c)}, to)
	}
}

// futile reports whether q can have no effect any more: an answer for a client that does not wait for it, or a
// request that the engine has dealt with for good.
func (m *queues) futile(s *queueState, q msg) bool {
	p, known := s.clients[q.id()-1].phase, s.tomb[q.id()-1]
	switch k := q.kind(); k {
	case acquire:
		return known
	case release:
		return known && !m.awaits(p, ended)
	default:
		return m.isTooLate(q) || !m.awaits(p, k)
	}
}

// isTooLate reports whether q is a grant of which nothing is left.
func (m *queues) isTooLate(q msg) bool {
	switch q.kind() {
	case push:
		return m.rules.TrustGrant && m.rules.TrustClaim && m.rules.TrustOffset && q.age() >= m.claim
	case yours:
		return q.age() >= m.lease
	}
	return false
}

// awaits reports whether an answer or a push of that kind changes a client in that phase.
func (m *queues) awaits(p phase, k kind) bool {
	switch k {
	case ended:
		return p == lost || p == leaving
	case queued:
		return p == asking || p == inside && !m.rules.IgnoreStale
	case push:
		return p == asking
	case yours:
		return p == asking || p == inside
	}
	return false
}

func (m *queues) crashed(s *queueState) int {
	n := 0
	for c := range m.clients {
		if s.clients[c].phase == crashed {
			n++
		}
	}
	return n
}

// Tell says what happened and what it changed.
func (m *queues) Tell(from queueState, e Event, to queueState) string {
	name := func(id uint8) string { return clientName(int(id) - 1) }
	var b strings.Builder
	b.WriteString(tell(e, clientName(int(e.Who)), name))
	for c := range m.clients {
		if p, was := to.clients[c], from.clients[c]; p.phase != was.phase {
			fmt.Fprintf(&b, "; %s is %s", clientName(c), p.phase)
			if p.phase == inside {
				fmt.Fprintf(&b, ", trusting it for %d ticks", p.trust)
			}
		}
	}
	if to.holder != from.holder || to.left > from.left || to.line != from.line {
		fmt.Fprintf(&b, "; the engine: %s", m.record(&to))
	}
	return b.String()
}

// record says what the engine has of the lock.
func (m *queues) record(s *queueState) string {
	text := "free"
	if s.holder != 0 {
		text = fmt.Sprintf("held by %s for %d ticks", clientName(int(s.holder)-1), s.left)
		if !s.claimed {
			text += " unless claimed"
		}
	}
	for i, id := range s.line {
		if id != 0 {
			text += fmt.Sprintf(", %d. in the queue is %s", i+1, clientName(int(id)-1))
		}
	}
	return text
}
