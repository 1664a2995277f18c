package handoff

import (
	"fmt"
	"strings"
)

// Tell says what happened and what it changed.
func (m *directs) Tell(from directState, e Event, to directState) string {
	var b strings.Builder
	b.WriteString(m.queues.Tell(from.queueState, e, to.queueState))
	name := func(id uint8) string { return clientName(int(id) - 1) }
	for c := range m.clients {
		if d, was := to.direct[c], from.direct[c]; d.next != 0 && d.next != was.next {
			fmt.Fprintf(&b, "; %s knows %s as its successor", clientName(c), name(d.next))
		}
	}
	if to.named != 0 && (to.named != from.named || to.due > from.due) {
		fmt.Fprintf(&b, "; the engine keeps the lock for %s for %d ticks", name(to.named), to.due)
	}
	return b.String()
}

// Canon puts the clients in order of what they are at, and renames requests accordingly.
func (m *directs) Canon(s directState) directState {
	var keys [maxClients]uint64
	for c := range m.clients {
		keys[c] = m.rank(&s, c)
	}
	place, sorted := order(keys[:m.clients])
	if sorted {
		return s
	}
	to := s
	to.queueState = m.renamed(s.queueState, place)
	to.named, to.broken = renamedID(s.named, place), renamedID(s.broken, place)
	for c := range m.clients {
		d := s.direct[c]
		d.next, d.via = renamedID(d.next, place), renamedID(d.via, place)
		to.direct[place[c]] = d
		to.mayYield[place[c]] = s.mayYield[c]
	}
	return to
}

// rank is that of queues, with what else distinguishes c: what is under way for it, and who has named it.
func (m *directs) rank(s *directState, c int) uint64 {
	id := uint8(c + 1)
	sum := uint64(0)
	note := func(what uint64) { sum += (what + 1) * 0x9e3779b97f4a7c15 >> 33 } // in any order, so it is added
	for _, q := range s.wire {
		if q != 0 && q.id() == id {
			note(uint64(q.with(0, q.token())) &^ (15 << 8))
		}
		if q != 0 && q.peer() == id {
			note(uint64(q.with(0, q.token()))&^(15<<8) | 1<<40)
		}
	}
	for by, d := range s.direct {
		phase := uint64(s.clients[by].phase)
		if d.next == id {
			note(phase | uint64(d.age)<<8 | 1<<41)
		}
		if d.via == id {
			note(phase | 1<<42)
		}
	}
	d := s.direct[c]
	note(uint64(d.age) | uint64(d.token)<<8 | uint64(d.nextToken)<<16 | 1<<43)
	for i, is := range [...]bool{s.named == id, s.broken == id, s.mayYield[c], s.put[c], d.next != 0, d.via != 0} {
		if is {
			note(uint64(i) | 1<<44)
		}
	}
	return m.queues.rank(&s.queueState, c)<<36 | sum&(1<<36-1)
}
