package handoff

// retains is the model of retention with recall. Client A keeps the engine's grant after an Unlock, and its next Lock
// takes the grant over without a message. Client B wants the lock once: it queues at the engine and asks again until it
// is served. It is about the rules "Retain" and "Wanted".
//
// The grant by push is the business of queues: here B is served when it asks again, and the engine's word that the lock
// is free is modelled only where the faults have stopped.
type retains struct {
	rules Rules
	locks uint8 // Lock calls of A, one after the other
	lease uint8 // ticks that a hold lasts
	short uint8 // ticks that a retained grant lasts
	room  int   // messages under way at once
}

// A makes one request, and further ones only when it cannot take over; B makes one. A request's id is its place plus 1.
const (
	bRequest       = 3
	retainRequests = 4
)

// cut says what A knows of the shortening of a retained grant.
type cut uint8

const (
	notCut cut = iota
	cutSent
	cutConfirmed
)

// retainRequest is one request and the client's side of its grant.
type retainRequest struct {
	phase  phase
	trust  uint8 // ticks until the local deadline
	pass   uint8 // how often the grant was taken over
	wanted bool  // the client was told that another wants the lock
	cut    cut   // within the present retention
}

// retainState is one situation, with relative times only.
type retainState struct {
	requests [retainRequests]retainRequest
	locks    uint8 // Lock calls of A so far
	holder   uint8 // request id, 0 = none
	left     uint8 // ticks until the engine ends the hold
	pass     uint8 // the largest that the engine has heard of for this hold
	short    bool  // the engine knows that this pass is retained
	queued   bool  // B is in the queue
	tomb     [retainRequests]bool
	wire     wire
}

// The fourth part of a message holds flags in this model. Only the client knows which messages are older: it compares
// instants of sending, and the flag is how the model keeps their order within a tick.
const (
	flagOlder  = 1 // the request was sent before the last shortening of its grant
	flagWanted = 2 // of an answer: B waits
	passShift  = 1 // of a request: the bits from here up are the pass
)

// Start is a free lock.
func (m *retains) Start() retainState { return retainState{} }

// Check finds two owners inside. When nothing is under way it also finds waiters who are served too late after the
// faults have stopped: whether the engine can reach A, or A hears only the answers to what it sends.
func (m *retains) Check(s retainState) Fault {
	believers := 0
	for _, p := range s.requests {
		if p.phase == inside {
			believers++
		}
	}
	switch {
	case believers > 1:
		return TwoInside
	case s.wire.len() > 0:
		return ""
	}
	if fault := m.heal(s, false); fault != "" {
		return fault
	}
	return m.heal(s, true)
}

// Next takes every step that is possible in s.
func (m *retains) Next(s retainState, visitAll func(Event, retainState)) {
	visit := func(e Event, to retainState) {
		to.wire.drop(func(q msg) bool { return m.futile(&to, q) })
		visitAll(e, to)
	}
	for i := range s.requests {
		m.act(s, i, visit)
	}
	m.actTogether(s, visit)
	s.wire.each(func(i int, q msg) {
		to := s
		to.wire.take(i)
		visit(Event{What: doLose, Msg: q}, to)
		m.deliver(&to, q)
		visit(Event{What: doDeliver, Msg: q}, to)
	})
	visit(Event{What: doTick}, m.tick(s))
}

// deliver lets q, already taken from the wire, take effect. A request causes one message at most, so there is room.
func (m *retains) deliver(s *retainState, q msg) {
	if !q.isRequest() {
		m.receive(s, q)
		return
	}
	if answer := m.serve(s, q); answer != 0 {
		s.wire.put(answer, len(s.wire))
	}
}

// tick lets time pass for everybody at once. A retained grant has no owner, so nobody is told when its trust ends.
func (m *retains) tick(s retainState) retainState {
	if s.left = remaining(s.left, 1); s.left == 0 {
		s.free()
	}
	s.wire.tick(m.lease, 0)
	for i := range s.requests {
		p := &s.requests[i]
		if p.trust = remaining(p.trust, 1); p.trust > 0 {
			continue
		}
		switch p.phase {
		case inside:
			p.phase = lost
		case retained:
			m.leave(p)
		}
	}
	return s
}

// act takes the steps that the client may take for request i.
func (m *retains) act(s retainState, i int, visit func(Event, retainState)) {
	step := func(what action, k kind, change func(p *retainRequest)) {
		to := s
		if k != noMessage && !m.send(&to, k, i) {
			return
		}
		if change != nil {
			change(&to.requests[i])
		}
		visit(Event{What: what, Who: uint8(i)}, to)
	}
	switch p := s.requests[i]; p.phase {
	case asking:
		step(doAskAgain, acquire, nil)
	case inside:
		if i != bRequest {
			step(doRenew, renew, nil)
		}
		if m.mayRetain(i, p) {
			step(doRetain, noMessage, (*retainRequest).retain)
			return
		}
		step(doUnlock, release, m.leave)
	case retained:
		step(doShorten, shorten, nil)
		step(doGiveBack, release, m.leave)
	case lost, leaving:
		step(doReleaseAgain, release, m.leave)
	}
}

// actTogether takes the steps that depend on more than one request: calls of Lock, and A's crash.
func (m *retains) actTogether(s retainState, visit func(Event, retainState)) {
	if to := s; to.requests[bRequest].phase == idle && m.send(&to, acquire, bRequest) {
		to.requests[bRequest].phase = asking
		visit(Event{What: doStart, Who: bRequest}, to)
	}
	if s.has(crashed) {
		return
	}
	if i, from := m.lock(s); from == retained {
		to := s
		m.takeOver(&to, i)
		visit(Event{What: doTakeOver, Who: uint8(i)}, to)
	} else if to := s; from == idle && m.send(&to, acquire, i) {
		to.requests[i].phase = asking
		to.locks++
		visit(Event{What: doStart, Who: uint8(i)}, to)
	}
	if to := s; m.crash(&to) {
		visit(Event{What: doCrash}, to)
	}
}

// lock says what the next Lock of A starts from: a retained grant, an idle request, or (done) nothing at present. An
// owner of A that finds another one inside or asking waits inside the process, and locals models that.
func (m *retains) lock(s retainState) (i int, from phase) {
	if s.locks == m.locks || s.has(asking) || s.has(inside) {
		return 0, done
	}
	for i := range bRequest {
		switch p := s.requests[i]; {
		case p.phase == retained || p.phase == idle:
			return i, p.phase
		case p.phase == leaving && p.trust > 0 && !m.rules.ReleaseIsFinal:
			return i, retained
		}
	}
	return 0, done
}

// has reports whether a request of A is in that phase.
func (s *retainState) has(in phase) bool {
	for _, p := range s.requests[:bRequest] {
		if p.phase == in {
			return true
		}
	}
	return false
}

// crash ends A, and reports whether there was anything to end.
func (m *retains) crash(s *retainState) (did bool) {
	for i := range bRequest {
		p := &s.requests[i]
		if p.phase == idle || p.phase == done {
			continue
		}
		*p, did = retainRequest{phase: crashed, cut: p.cut.known()}, true
	}
	return did
}
