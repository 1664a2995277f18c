package handoff

import (
	"fmt"
	"strings"
)

// locals is the model of one process and a remote client on one lock. In the process, the owner a has two calls of
// Lock at the engine at once (its local queue was detached by an earlier loss), and the owner b waits behind the first
// of them for the hold to be passed on. Everybody wants the lock once; who is refused polls. It is about rules 2, 13
// and 14.
type locals struct {
	rules Rules
	named bool  // the owner a was named by its caller, so that its requests re-enter through the engine
	lease uint8 // ticks
	room  int   // messages under way at once
}

// The calls of Lock. The id of the request that each makes for itself is its number plus one.
const (
	first  = 0 // owner a; its hold can be passed on
	second = 1 // owner a, the same owner as first
	local  = 2 // owner b, in the same process
	remote = 3 // another process
	calls  = 4
)

var callNames = [calls]string{"a/1", "a/2", "b", "remote"}

// localCall is one call of Lock.
type localCall struct {
	phase phase
	hold  uint8 // the request id under which the engine knows what the call has or wants
	trust uint8 // ticks until the local deadline
}

// localState is one situation, with relative times only.
type localState struct {
	calls [calls]localCall
	left  [calls]uint8 // by request id less one: ticks until the engine ends that hold; one owner may have several
	tomb  [calls]bool  // by request id less one
	wire  wire
}

// Start is a free lock.
func (m *locals) Start() localState {
	var s localState
	for c := range s.calls {
		s.calls[c].hold = uint8(c + 1)
	}
	return s
}

// ownerOf returns whom a call belongs to: re-entry is by owner, so two of a's calls inside are as they should be.
func ownerOf(call int) int { return max(call, second) }

// Check finds two owners inside, and, when nothing is under way, waiters who are never served once the faults stop.
func (m *locals) Check(s localState) Fault {
	for c, p := range s.calls {
		for d, q := range s.calls[:c] {
			if p.phase == inside && q.phase == inside && ownerOf(c) != ownerOf(d) {
				return TwoInside
			}
		}
	}
	if s.wire.len() == 0 {
		return m.heal(s)
	}
	return ""
}

// Next takes every step that is possible in s.
func (m *locals) Next(s localState, visitAll func(Event, localState)) {
	visit := func(e Event, to localState) {
		to.wire.drop(func(q msg) bool { return m.futile(&to, q) })
		visitAll(e, to)
	}
	for c := range s.calls {
		m.act(s, c, visit)
	}
	s.wire.each(func(i int, q msg) {
		to := s
		to.wire.take(i)
		visit(Event{What: doLose, Msg: q}, to)
		m.deliver(&to, q)
		visit(Event{What: doDeliver, Msg: q}, to)
	})
	visit(Event{What: doTick}, m.tick(s))
}

// deliver lets q, already taken from the wire, take effect. An answer takes the place of its request, so there is room.
func (m *locals) deliver(s *localState, q msg) {
	if q.isRequest() {
		s.wire.put(m.serve(s, q), len(s.wire))
		return
	}
	m.receive(s, q)
}

// tick lets time pass for everybody at once.
func (m *locals) tick(s localState) localState {
	tickDown(s.left[:])
	s.wire.tick(m.lease, 0)
	for c := range s.calls {
		p := &s.calls[c]
		if p.trust = remaining(p.trust, 1); p.phase == inside && p.trust == 0 {
			p.phase = lost
			m.detach(&s, c)
		}
	}
	return s
}

// detach sends b to the engine when the hold that it waits behind will not come.
func (m *locals) detach(s *localState, c int) {
	if c == first && s.calls[local].phase == queuing && (m.rules.LossDetaches || s.calls[first].phase != lost) {
		s.calls[local].phase = asking // its first poll sends the request
	}
}

// act takes the steps that call c may take on its own.
func (m *locals) act(s localState, c int, visit func(Event, localState)) {
	step := func(what action, k kind, change func(to *localState)) {
		to := s
		if k != noMessage && !to.wire.put(newMsg(k, s.calls[c].hold, 0, 0), m.room) {
			return
		}
		if change != nil {
			change(&to)
		}
		visit(Event{What: what, Who: uint8(c)}, to)
	}
	switch s.calls[c].phase {
	case idle:
		if c == local && m.behindFirst(&s) {
			step(doStart, noMessage, func(to *localState) { to.calls[c].phase = queuing })
			return
		}
		step(doStart, acquire, func(to *localState) { to.calls[c].phase = asking })
	case asking:
		step(doAskAgain, acquire, nil)
	case inside:
		step(doRenew, renew, nil)
		m.unlock(s, c, step)
	case lost:
		if m.mayPass(&s, c) {
			step(doPass, noMessage, func(to *localState) { m.pass(to) })
			return
		}
		step(doUnlock, release, func(to *localState) { m.leave(to, c) })
	case leaving:
		step(doReleaseAgain, release, nil)
	}
}

// unlock is a's first call passing its hold on where that is allowed, and a release otherwise.
func (m *locals) unlock(s localState, c int, step func(action, kind, func(*localState))) {
	if m.mayPass(&s, c) {
		step(doPass, noMessage, func(to *localState) { m.pass(to) })
		return
	}
	step(doUnlock, release, func(to *localState) { m.leave(to, c) })
}

// behindFirst reports whether a call of b queues inside the process.
func (m *locals) behindFirst(s *localState) bool {
	p := s.calls[first].phase
	return p == asking || p == inside
}

// mayPass reports whether an unlock by c passes the hold on.
func (m *locals) mayPass(s *localState, c int) bool {
	p, waiter := s.calls[c], s.calls[local].phase
	switch {
	case c != first || s.calls[second].phase == inside:
		return false // this owner is not through with the lock
	case m.named && m.rules.NamedStay:
		return false // who re-enters by that name would get in beside the receiver
	case p.phase == lost:
		return !m.rules.NoPassAfterLoss && (waiter == queuing || waiter == asking)
	case waiter != queuing:
		return false
	}
	return !m.rules.PassDeadline || 3*p.trust >= 2*m.lease
}

// pass gives the process's hold to b. The engine is not told.
func (m *locals) pass(s *localState) {
	from, to := &s.calls[first], &s.calls[local]
	trust := from.trust
	if !m.rules.PassDeadline || from.phase == lost {
		trust = m.lease
	}
	*to = localCall{phase: inside, hold: from.hold, trust: trust}
	*from = localCall{phase: done}
}

// leave lets c wait for the answer to its release.
func (m *locals) leave(s *localState, c int) {
	s.calls[c].phase, s.calls[c].trust = leaving, 0
	m.detach(s, c)
}

// receive lets an answer take effect on the call that has its hold now, which need not be the one that asked.
func (m *locals) receive(s *localState, q msg) {
	for c := range s.calls {
		p := &s.calls[c]
		if p.hold != q.id() {
			continue
		}
		trust := remaining(m.lease, q.age())
		switch k := q.kind(); {
		case p.phase == asking && k == yours && trust > 0:
			p.phase, p.trust = inside, trust
		case p.phase == inside && (k == yours || k == renewed):
			p.trust = max(p.trust, trust)
		case p.phase == inside && k == notYours:
			p.phase, p.trust = lost, 0
			m.detach(s, c)
		case p.phase == leaving && k == ended:
			*p = localCall{phase: done}
		}
	}
}

// futile reports whether q can have no effect any more: an answer that nobody waits for, or an acquire that is refused.
func (m *locals) futile(s *localState, q msg) bool {
	switch q.kind() {
	case acquire:
		return s.tomb[q.id()-1]
	case held, gone:
		return true // they tell a poller nothing
	case renew:
		return s.tomb[q.id()-1]
	case release, ended:
		return s.tomb[q.id()-1] && !m.leaves(s, q.id())
	}
	for _, p := range s.calls {
		if p.hold == q.id() && (p.phase == asking || p.phase == inside) {
			return q.kind() != notYours && q.age() >= m.lease
		}
	}
	return true
}

// leaves reports whether a call waits for the end of hold id to be confirmed.
func (m *locals) leaves(s *localState, id uint8) bool {
	for _, p := range s.calls {
		if p.hold == id && p.phase == leaving {
			return true
		}
	}
	return false
}

// Tell says what happened and what it changed.
func (m *locals) Tell(from localState, e Event, to localState) string {
	name := func(id uint8) string { return callNames[id-1] }
	var b strings.Builder
	b.WriteString(tell(e, callNames[e.Who], name))
	for c := range to.calls {
		if p, was := to.calls[c], from.calls[c]; p.phase != was.phase {
			fmt.Fprintf(&b, "; %s is %s", callNames[c], p.phase)
			if p.phase == inside {
				fmt.Fprintf(&b, ", trusting it for %d ticks", p.trust)
			}
		}
	}
	for i := range to.left {
		switch {
		case to.left[i] > from.left[i]:
			fmt.Fprintf(&b, "; the engine has a hold of %s for %d ticks", name(uint8(i+1)), to.left[i])
		case to.left[i] == 0 && from.left[i] > 0:
			fmt.Fprintf(&b, "; the engine has no hold of %s any more", name(uint8(i+1)))
		}
	}
	return b.String()
}
