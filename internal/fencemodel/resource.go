package fencemodel

// stamp is what holder i shows now.
func (h *hold) stamp(i int) stamp {
	return stamp{mark: mark{token: h.token, nonce: int8(i) + 1}, shared: h.mode != writing}
}

// touch asks the fence about a stamp of holder i, and reports whether it passes.
func (m *model) touch(to *state, i int, s stamp, isRead bool) bool {
	if isRead && !m.rules.CheckReads {
		return true
	}
	h := &to.holds[i]
	if !m.rules.passes(to.marks, s) {
		if h.live && s == h.stamp(i) && !m.forgets {
			m.blame(to, WrongRefusal)
		}
		return false
	}
	to.marks = m.rules.raised(to.marks, s)
	return true
}

// truly notes that a stamp has had its effect, and whether it was too late for that. Tokens tell the true
// order unless they go back.
func (m *model) truly(to *state, s stamp) {
	if m.forgets {
		return
	}
	late := s.token < to.newest.writer.token || !s.shared && s.token < to.newest.reader.token
	if late {
		m.blame(to, StaleEffect)
	}
	if s.shared {
		to.newest.reader.token = max(to.newest.reader.token, s.token)
	} else {
		to.newest.writer.token = max(to.newest.writer.token, s.token)
	}
}

// read lets holder i read the number.
func (m *model) read(to *state, i int) {
	h := &to.holds[i]
	s := h.stamp(i)
	if m.rules.Atomic && !m.touch(to, i, s, true) {
		return
	}
	h.touched = false
	if h.read != none && h.read != to.number {
		m.blame(to, UnstableRead)
	}
	h.read = to.number
	m.truly(to, s)
}

// arrive brings the write of holder i to the resource, with the stamp of when it was sent.
func (m *model) arrive(to *state, i int) {
	w := &to.holds[i].write
	s := stamp{mark: mark{token: w.token, nonce: int8(i) + 1}}
	if !m.touch(to, i, s, false) {
		*w = write{}
		return
	}
	m.truly(to, s)
	w.passed = true
	if m.rules.Atomic {
		m.apply(to, i)
	}
}

// apply writes.
func (m *model) apply(to *state, i int) {
	h := &to.holds[i]
	if h.write.base != none && h.write.base != to.number {
		m.blame(to, LostUpdate)
	}
	to.number++
	if h.read != none {
		h.read = to.number // its own write does not surprise it
	}
	h.write = write{}
}
