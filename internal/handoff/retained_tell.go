package handoff

import (
	"fmt"
	"strings"
)

// Tell says what happened and what it changed.
func (m *retains) Tell(from retainState, e Event, to retainState) string {
	var b strings.Builder
	who := m.name(e.Who + 1)
	if e.What == doCrash {
		who = "A"
	}
	b.WriteString(tell(e, who, m.name))
	for i := range to.requests {
		p, was := to.requests[i], from.requests[i]
		if p.phase != was.phase {
			fmt.Fprintf(&b, "; %s is %s", m.name(uint8(i+1)), p.phase)
		}
		if p.trust > was.trust || p.phase != was.phase && p.trust > 0 || was.cut == notCut && p.cut == cutSent {
			fmt.Fprintf(&b, ", trusting it for %d ticks", p.trust)
		}
		if p.wanted && !was.wanted {
			fmt.Fprintf(&b, "; %s remembers that it is wanted", m.name(uint8(i+1)))
		}
	}
	changed := to.holder != from.holder || to.left > from.left || to.pass != from.pass || to.short != from.short
	if changed || e.What == doDeliver && to.left != from.left || to.queued != from.queued {
		fmt.Fprintf(&b, "; the engine: %s", m.record(&to))
	}
	return b.String()
}

// record says what the engine has of the lock.
func (m *retains) record(s *retainState) string {
	text := "free"
	if s.holder != 0 {
		text = fmt.Sprintf("held by %s for %d ticks, pass %d", m.name(s.holder), s.left, s.pass)
		if s.short {
			text += ", retained"
		}
	}
	if s.queued {
		text += ", B is in the queue"
	}
	return text
}

// name returns the words for a request id.
func (m *retains) name(id uint8) string {
	if id == bRequest+1 {
		return "B"
	}
	return fmt.Sprintf("A%d", id)
}
