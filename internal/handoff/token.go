package handoff

import "fmt"

// tokens is the model of the fencing numbers of one lock: who mints them when, under local passes and failovers that
// forget the last grants. It is about rule 7. Messages play no part in it, because a token is minted in the step that
// grants.
//
// A tick is the clock's unit, and the model grants at most once in it, as a server that needs more than a microsecond a
// grant does. A failover takes at least as many ticks as a block has tokens: so much is asked of the new node's clock.
type tokens struct {
	rules Rules
	block int8 // tokens asked for at once
}

// tokenState has all tokens relative to the clock, so that 0 is a token minted from the clock in this tick. What is a
// block or more behind the clock is all alike: it can meet nothing that the clock mints.
type tokenState struct {
	last    int8 // the last token, as the engine has stored it
	copied  int8 // the same on the replica
	seen    int8 // the largest token that anybody has been given
	passes  int8 // how often the present hold may still be passed on; -1 = not held
	down    int8 // ticks until the new node serves
	granted bool // in this tick
	stale   bool // the token given last was not larger than all before
}

// Start is a lock that nobody has ever held.
func (m *tokens) Start() tokenState {
	return tokenState{last: -m.block, copied: -m.block, seen: -m.block, passes: -1}
}

// Check finds a token that was not the largest when it was given.
func (m *tokens) Check(s tokenState) Fault {
	if s.stale {
		return TokenNotNewer
	}
	return ""
}

// Next takes every step that is possible in s.
func (m *tokens) Next(s tokenState, visit func(Event, tokenState)) {
	step := func(what action, change func(to *tokenState)) {
		to := s
		change(&to)
		visit(Event{What: what}, to)
	}
	switch {
	case s.passes < 0 && s.down == 0 && !s.granted:
		step(doGrant, m.grant)
	case s.passes > 0:
		step(doPass, func(to *tokenState) { to.passes--; to.give(s.seen + 1) })
	}
	if s.passes >= 0 {
		step(doUnlock, func(to *tokenState) { to.passes = -1 })
	}
	step(doReplicate, func(to *tokenState) { to.copied = s.last })
	// The new node knows what the replica had. The hold went with the old one.
	step(doFailover, func(to *tokenState) { to.last, to.passes, to.down = s.copied, -1, m.block })
	step(doTick, func(to *tokenState) {
		to.last, to.copied, to.seen = m.older(s.last), m.older(s.copied), m.older(s.seen)
		to.down, to.granted = max(0, s.down-1), false
	})
}

// grant mints a token, or a block of them: max(last + 1, clock), where the clock stands at 0.
func (m *tokens) grant(s *tokenState) {
	size := int8(1)
	if s.last < 0 || !m.rules.BlockIfBehind {
		size = m.block
	}
	token := max(s.last+1, 0)
	s.last = token + size - 1
	if !m.rules.StoreBlockEnd {
		s.last = token
	}
	s.passes, s.granted = size-1, true
	s.give(token)
}

// give hands a token to a holder.
func (s *tokenState) give(token int8) {
	s.stale = token <= s.seen
	s.seen = max(s.seen, token)
}

// older returns a token as it looks one tick later.
func (m *tokens) older(token int8) int8 { return max(-m.block, token-1) }

// Tell says what happened and what it changed.
func (m *tokens) Tell(from tokenState, e Event, to tokenState) string {
	switch e.What {
	case doGrant:
		return fmt.Sprintf("the lock is granted with token %s and %d passes; the engine stores %s as the last token",
			m.at(max(from.last+1, 0)), to.passes, m.at(to.last))
	case doPass:
		return "the hold is passed on inside the process with token " + m.at(from.seen+1)
	case doUnlock:
		return "the lock is released"
	case doReplicate:
		return "the replica hears that the last token is " + m.at(to.copied)
	case doFailover:
		return "the replica takes over; the last token that it knows is " + m.at(to.last)
	}
	return "a tick passes; the largest token given stands at " + m.at(to.seen)
}

// at names a token by its distance from the clock.
func (m *tokens) at(token int8) string {
	switch {
	case token <= -m.block:
		return "long past"
	case token == 0:
		return "now"
	}
	return fmt.Sprintf("now%+d", token)
}
