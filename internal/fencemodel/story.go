package fencemodel

import (
	"fmt"

	"github.com/interlock-go/interlock/internal/handoff"
)

// Tell says what happened and what it changed.
func (m *model) Tell(from state, e handoff.Event, to state) string {
	a, i := parts(e)
	before, after := from.holds[i], to.holds[i]
	who := string(rune('A' + i))
	verdict := func(passed bool) string {
		if !passed {
			return "refused, " + from.marks.String()
		}
		return "accepted, " + to.marks.String()
	}
	switch a {
	case doAcquire, doAcquire + 1, doAcquire + 2:
		return fmt.Sprintf("%s gets the lock %v, with token %d", who, after.mode, after.token)
	case doExpire:
		return fmt.Sprintf("the lease of %s ends; %s does not know", who, who)
	case doUpgrade:
		return fmt.Sprintf("%s is upgraded; its token is %d", who, after.token)
	case doDowngrade:
		return fmt.Sprintf("%s goes on %v, with token %d", who, after.mode, after.token)
	case doTouch:
		return fmt.Sprintf("a read of %s is checked: %s", who, verdict(after.touched))
	case doRead:
		passed := !m.rules.Atomic || !m.rules.CheckReads || m.rules.passes(from.marks, before.stamp(i))
		return fmt.Sprintf("%s reads %d: %s", who, from.number, verdict(passed))
	case doSend:
		return fmt.Sprintf("%s, having read %d, sends a write of %d", who, before.read, before.read+1)
	case doSendBlind:
		return fmt.Sprintf("%s sends a write without having read", who)
	case doArrive:
		return fmt.Sprintf("the write of %s, with token %d, arrives: %s", who, before.write.token,
			verdict(after.write.passed || to.number > from.number))
	case doApply:
		return fmt.Sprintf("the write of %s that was checked before is done", who)
	}
	return "the engine loses its memory: who holds, and which tokens it has granted"
}

// String is for stories.
func (k marks) String() string {
	return fmt.Sprintf("marks: writer %d, reader %d", k.writer.token, k.reader.token)
}
