package handoff

import "slices"

// Tokens are numbered from the newest down, so that there are finitely many: 0 is none, and a larger one is newer. One
// that a holder makes by itself may be newer than the engine's newest.
const (
	oldestToken = 1
	newestToken = 8
)

// tokens calls f with every place for a token.
func (s *directState) tokens(f func(token *uint8)) {
	f(&s.kept)
	f(&s.token)
	f(&s.seen)
	for c := range s.direct {
		f(&s.direct[c].token)
		f(&s.direct[c].nextToken)
	}
	for i, q := range s.wire {
		if token := q.token(); token != 0 {
			f(&token)
			s.wire[i] = q.with(q.peer(), token)
		}
	}
	s.wire.sort()
}

// mint makes all tokens one older, and returns the new one.
func (s *directState) mint() uint8 {
	s.tokens(func(token *uint8) {
		if *token > oldestToken {
			*token--
		}
	})
	return newestToken
}

// closeGaps closes the gaps between tokens, because only their order matters: where the engine makes them all.
func (s *directState) closeGaps() {
	var used [newestToken + 1]bool
	s.tokens(func(token *uint8) { used[*token] = true })
	var to [newestToken + 1]uint8
	next := uint8(newestToken)
	for _, token := range slices.Backward([]uint8{1, 2, 3, 4, 5, 6, 7, 8}) {
		if used[token] {
			to[token] = next
			next--
		}
	}
	s.tokens(func(token *uint8) { *token = to[*token] })
}
