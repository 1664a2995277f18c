package filelock

import (
	"errors"
	"time"
)

// Fencing tokens: the clock in microseconds, or one more than the last (docs/rationale.md, Tokens).

// maxBlock bounds how far tokens run ahead of the clock: 4096 of them are 4 milliseconds, less than any restart after a
// power cut takes.
const maxBlock = 4096

var errTokensUsedUp = errors.New("the record has the last possible token")

// nextTokens returns the first token behind last and how many of the wanted ones are granted.
//
// More than one are granted only while the clock is ahead. Otherwise a lock that passes fast from process to process
// would run ahead of the clock for ever. The clock could then not make good a lost record.
func nextTokens(last uint64, now time.Time, want int) (first uint64, n int, err error) {
	clock := uint64(max(now.UnixMicro(), 0))
	if clock > last && clock <= maxToken-maxBlock {
		return clock, min(max(want, 1), maxBlock), nil
	}
	if last >= maxToken {
		return 0, 0, errTokensUsedUp
	}
	return last + 1, 1, nil
}
