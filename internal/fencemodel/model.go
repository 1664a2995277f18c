package fencemodel

import (
	"slices"

	"github.com/interlock-go/interlock/internal/handoff"
)

// The faults that the model looks for.
const (
	LostUpdate handoff.Fault = "lost update: a write is accepted that was computed from a number which has " +
		"changed since"
	UnstableRead handoff.Fault = "unstable read: somebody else has written between two reads of one holder"
	StaleEffect  handoff.Fault = "stale effect: a holder touches the resource although a newer one has been there"
	WrongRefusal handoff.Fault = "wrong refusal: who holds the lock is refused"
)

// most is how many acquisitions there can be.
const most = 3

// mode is how a lock is held.
type mode uint8

const (
	unused mode = iota
	reading
	upgradeable
	writing
)

func (m mode) String() string {
	return [...]string{"unused", "for reading", "for reading, upgradeable", "for writing"}[m]
}

// action is one kind of step.
type action uint8

const (
	doAcquire action = iota // and the two after it: for reading, upgradeable, for writing
	_
	_
	doExpire
	doUpgrade
	doDowngrade
	doTouch // of a read whose check is a step of its own
	doRead
	doSend
	doSendBlind
	doArrive
	doApply // of a write whose check is a step of its own
	doForget
)

func event(a action, who int) handoff.Event {
	return handoff.Event{Who: uint8(a)*most + uint8(who)}
}

func parts(e handoff.Event) (a action, who int) { return action(e.Who / most), int(e.Who % most) }

// none is no number.
const none int8 = -1

// hold is one acquisition, from the holder's side, who does not know whether it still is one.
type hold struct {
	mode     mode
	live     bool // the engine still counts it
	upgraded bool
	touched  bool // a read has passed the check and is not done yet; only if not Atomic
	token    int8
	read     int8 // the number it read last, or has written since
	write    write
}

// write is a write under way; none if its token is 0.
type write struct {
	token  int8
	base   int8 // the number that it was computed from
	passed bool // the check, and is not applied yet; only if not Atomic
}

// state is everything.
type state struct {
	holds  [most]hold
	last   int8 // token
	number int8
	marks  marks
	newest marks // who truly was the newest to touch, by order of acquisition
	fault  uint8 // 1 + index into faults
}

var faults = [...]handoff.Fault{LostUpdate, UnstableRead, StaleEffect, WrongRefusal}

// model is a lock and a fenced resource.
type model struct {
	rules   Rules
	numbers int8          // writes at most
	forgets bool          // the engine may lose its memory
	only    handoff.Fault // look for no other, if not empty
}

// Start has nobody and nothing.
func (m *model) Start() state {
	var s state
	for i := range s.holds {
		s.holds[i].read = none
	}
	return s
}

// Check finds what the last step did.
func (m *model) Check(s state) handoff.Fault {
	if s.fault == 0 {
		return ""
	}
	return faults[s.fault-1]
}

// blame notes a fault, the first of a step.
func (m *model) blame(to *state, f handoff.Fault) {
	if to.fault == 0 && (m.only == "" || m.only == f) {
		to.fault = uint8(slices.Index(faults[:], f) + 1)
	}
}

// Next takes every step that is possible in s.
func (m *model) Next(s state, visit func(handoff.Event, state)) {
	m.acquire(s, visit)
	for i := range most {
		h := &s.holds[i]
		step := func(can bool, a action, change func(to *state, h *hold)) {
			if can {
				to := s
				change(&to, &to.holds[i])
				visit(event(a, i), to)
			}
		}
		if h.mode == unused {
			continue
		}
		step(h.live, doExpire, func(_ *state, h *hold) { h.live = false })
		step(h.live && h.mode == upgradeable && !h.upgraded && !s.busy(i), doUpgrade, m.upgrade)
		step(h.live && h.mode == writing, doDowngrade, downgrade)
		step(!m.rules.Atomic && !h.touched, doTouch, func(to *state, h *hold) {
			h.touched = m.touch(to, i, h.stamp(i), true)
		})
		step(m.rules.Atomic || h.touched, doRead, func(to *state, _ *hold) { m.read(to, i) })
		mayWrite := h.mode == writing && h.write.token == 0 && s.number < m.numbers
		step(mayWrite && h.read != none, doSend, func(_ *state, h *hold) {
			h.write = write{token: h.token, base: h.read}
		})
		step(mayWrite && h.read == none && !m.forgets, doSendBlind,
			func(_ *state, h *hold) { h.write = write{token: h.token, base: none} })
		step(h.write.token != 0 && !h.write.passed, doArrive, func(to *state, _ *hold) { m.arrive(to, i) })
		step(h.write.passed, doApply, func(to *state, _ *hold) { m.apply(to, i) })
	}
	if m.forgets && s.last > 0 {
		to := s
		to.last = 0
		for i := range to.holds {
			to.holds[i].live = false
		}
		visit(event(doForget, 0), to)
	}
}

// busy reports whether another than i holds the lock.
func (s *state) busy(i int) bool {
	for j := range s.holds {
		if j != i && s.holds[j].live {
			return true
		}
	}
	return false
}

// acquire lets the next one get the lock, in each mode that is free.
func (m *model) acquire(s state, visit func(handoff.Event, state)) {
	next, free := 0, [...]bool{reading: true, upgradeable: true, writing: true}
	for ; next < most && s.holds[next].mode != unused; next++ {
		if h := s.holds[next]; h.live {
			free[reading] = free[reading] && h.mode != writing
			free[upgradeable] = free[upgradeable] && h.mode == reading
			free[writing] = false
		}
	}
	if next == most {
		return
	}
	for as := reading; as <= writing; as++ {
		if free[as] {
			to := s
			to.last++
			to.holds[next] = hold{mode: as, live: true, token: to.last, read: none}
			visit(event(doAcquire+action(as-reading), next), to)
		}
	}
}

func (m *model) upgrade(to *state, h *hold) {
	h.mode, h.upgraded = writing, true
	if m.rules.UpgradeMints {
		to.last++
		h.token = to.last
	}
	if m.forgets {
		h.read = none // see the package documentation
	}
}

func downgrade(_ *state, h *hold) {
	h.mode = reading
	if h.upgraded {
		h.mode = upgradeable
	}
}
