package handoff

import (
	"fmt"
	"strings"
)

// leases is the model of one lock taken by try, renewed, released and undone over a bad network. There is no queue: who
// is refused may try again with a further request. It is about identities (rules 1 and 3) and the trust window.
type leases struct {
	rules    Rules
	clients  int
	requests int   // of each client, one after the other
	lease    uint8 // ticks
	horizon  uint8 // ticks after which a request that is under way is dropped
	room     int   // messages under way at once
}

// leaseClient is one client. Its request ids follow from its place and req.
type leaseClient struct {
	phase phase
	req   uint8 // which of its requests it is at
	sends uint8 // acquires sent for it: 0, 1, or 2 for more
	trust uint8 // ticks until its local deadline
}

// leaseState is one situation. All times are relative, so the states are finitely many although time has no end.
type leaseState struct {
	clients [maxClients]leaseClient
	holder  uint8    // request id, 0 = none
	left    uint8    // ticks until the engine ends the hold
	tomb    [7]uint8 // by request id: ticks for which it is refused
	wire    wire
}

// Start is a free lock and idle clients.
func (m *leases) Start() leaseState { return leaseState{} }

// id returns the id of c's present request. Without fresh ids it is the same for all of them.
func (m *leases) id(s *leaseState, c int) uint8 {
	req := int(s.clients[c].req)
	if !m.rules.FreshIDs {
		req = 0
	}
	return uint8(c*m.requests + req + 1)
}

// owner returns the client behind an id.
func (m *leases) owner(id uint8) int { return (int(id) - 1) / m.requests }

// Check finds two clients inside, and an orphan. An undo that is still under way leaves no orphan, so that is only
// looked for when nothing is under way: from every state one can get there by losing what is.
func (m *leases) Check(s leaseState) Fault {
	believers := 0
	for c := range m.clients {
		if s.clients[c].phase == inside {
			believers++
		}
	}
	if believers > 1 {
		return TwoInside
	}
	if s.wire.len() == 0 && s.holder != 0 && s.left > 0 && !m.minds(&s, s.holder) {
		return Orphan
	}
	return ""
}

// minds reports whether the client behind id still does something about it, or crashed and cannot.
func (m *leases) minds(s *leaseState, id uint8) bool {
	c := m.owner(id)
	switch s.clients[c].phase {
	case crashed:
		return true
	case idle, done:
		return false
	}
	return m.id(s, c) == id
}

// Next takes every step that is possible in s.
func (m *leases) Next(s leaseState, visitAll func(Event, leaseState)) {
	visit := func(e Event, to leaseState) {
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
		if q.isRequest() {
			if to.wire.put(m.serve(&to, q), len(to.wire)) {
				visit(Event{What: doDeliver, Msg: q}, to)
			}
			return
		}
		m.receive(&to, q)
		visit(Event{What: doDeliver, Msg: q}, to)
	})
	visit(Event{What: doTick}, m.tick(s))
}

// tick lets time pass for everybody at once: clocks run in step.
func (m *leases) tick(s leaseState) leaseState {
	s.left = remaining(s.left, 1)
	if s.left == 0 {
		s.holder = 0
	}
	tickDown(s.tomb[:])
	s.wire.tick(m.lease, m.horizon)
	for c := range m.clients {
		p := &s.clients[c]
		if p.trust = remaining(p.trust, 1); p.phase == inside && p.trust == 0 {
			p.phase = lost
		}
	}
	return s
}

// act takes the steps that c may take on its own.
func (m *leases) act(s leaseState, c int, visit func(Event, leaseState)) {
	// step visits what change makes of s after sending k, if the network has room for it.
	step := func(what action, k kind, change func(to *leaseState, p *leaseClient)) {
		to := s
		if k != noMessage && !to.wire.put(newMsg(k, m.id(&s, c), 0, 0), m.room) {
			return
		}
		if change != nil {
			change(&to, &to.clients[c])
		}
		visit(Event{What: what, Who: uint8(c)}, to)
	}
	switch s.clients[c].phase {
	case idle:
		step(doStart, acquire, func(_ *leaseState, p *leaseClient) { p.phase, p.sends = asking, 1 })
	case asking:
		step(doAskAgain, acquire, func(_ *leaseState, p *leaseClient) { p.sends = 2 })
		if m.rules.UndoCancelled {
			step(doCancel, release, m.leave(c))
		} else {
			step(doCancel, noMessage, func(to *leaseState, _ *leaseClient) { m.finish(to, c) })
		}
	case inside:
		step(doRenew, renew, nil)
		step(doUnlock, release, m.leave(c))
	case leaving, lost:
		step(doReleaseAgain, release, func(to *leaseState, _ *leaseClient) {
			if !m.rules.RetryUntilKnown {
				m.finish(to, c)
			}
		})
	}
	if p := s.clients[c].phase; p != crashed && p != done {
		step(doCrash, noMessage, func(_ *leaseState, p *leaseClient) { *p = leaseClient{phase: crashed} })
	}
}

// futile reports whether the answer q can have no effect any more. Such a message is not kept: states that differ in
// one are alike, and leaving them out makes the model several times smaller.
func (m *leases) futile(s *leaseState, q msg) bool {
	if q.isRequest() || !m.rules.FreshIDs {
		return false
	}
	c := m.owner(q.id())
	if m.id(s, c) != q.id() {
		return true
	}
	k := q.kind()
	tooLate := (k == yours || k == renewed) && m.rules.TrustSent && q.age() >= m.lease
	return tooLate || !m.awaits(s.clients[c].phase, k)
}

// awaits reports whether an answer of that kind changes a client in that phase.
func (m *leases) awaits(p phase, k kind) bool {
	switch k {
	case ended:
		return p == lost || p == leaving
	case yours:
		return p == asking || p == inside
	case renewed:
		return p == inside || p == lost && !m.rules.LossIsFinal
	case notYours:
		return p == inside
	case held:
		return p == asking
	}
	return false
}

// refused ends a try. If it was sent more than once, another copy may still be granted: then it must be undone.
func (m *leases) refused(s *leaseState, c int) {
	if s.clients[c].sends > 1 && m.rules.UndoRetried {
		s.clients[c].phase = leaving
		return
	}
	m.finish(s, c)
}

// Tell says what happened and what it changed.
func (m *leases) Tell(from leaseState, e Event, to leaseState) string {
	var b strings.Builder
	b.WriteString(tell(e, clientName(int(e.Who)), m.name))
	for c := range m.clients {
		if p, was := to.clients[c], from.clients[c]; p.phase != was.phase {
			fmt.Fprintf(&b, "; %s is %s", clientName(c), p.phase)
			if p.phase == inside {
				fmt.Fprintf(&b, ", trusting it for %d ticks", p.trust)
			}
		}
	}
	switch {
	case to.holder == from.holder && to.left <= from.left:
	case to.holder == 0:
		b.WriteString("; in the engine the lock is free")
	default:
		fmt.Fprintf(&b, "; in the engine the lock is %s's for %d ticks", m.name(to.holder), to.left)
	}
	return b.String()
}

// name returns the words for a request id.
func (m *leases) name(id uint8) string {
	return fmt.Sprintf("%s%d", clientName(m.owner(id)), (int(id)-1)%m.requests+1)
}

func clientName(c int) string { return string(rune('A' + c)) }
