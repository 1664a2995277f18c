package memlock

import "time"

// Fencing tokens: the clock in microseconds or one more than the last, whichever is larger (docs/rationale.md, Tokens).

const (
	// maxBlock bounds a block of tokens: 65,536 tokens run ahead of the clock by 66 ms at most.
	maxBlock = 1 << 16
	// maxClock is where the clock stops counting for tokens, about the year 148,000. Above it there is room for 2^62
	// grants, one at a time, before a token would reach 2^63.
	maxClock = 1 << 62
)

// block is a run of fencing tokens, and the nonce that tells this acquisition from every other.
type block struct {
	first uint64
	n     int
	nonce string
}

// contains reports whether token is one of b.
func (b block) contains(token uint64) bool {
	return token >= b.first && token-b.first < uint64(b.n)
}

// end returns b's last token.
func (b block) end() uint64 { return b.first + uint64(b.n) - 1 }

// mint returns up to want tokens above last. The first is the clock in microseconds if that is larger. So tokens also
// grow across a store that was forgotten.
//
// A block of several is given only if the clock is ahead of last. Otherwise blocks that are granted faster than one
// token a microsecond would run ahead of the clock for ever. Tokens could then fall behind after the state was lost.
func mint(now time.Time, last uint64, want int) block {
	clock := uint64(min(max(now.UnixMicro(), 0), maxClock))
	if clock <= last {
		return block{first: last + 1, n: 1}
	}
	return block{first: clock, n: min(max(want, 1), maxBlock)}
}
