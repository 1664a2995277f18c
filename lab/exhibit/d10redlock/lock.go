// Package d10redlock is an exhibit, broken on purpose: Redlock by the textbook, asking one node after the other as one
// of the articles does. It rests on clocks that do not jump, on processes that do not stand still, and on nodes that do
// not forget; and it has no token that a resource could check.
package d10redlock

import (
	"context"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is one lock on several servers that know nothing of each other.
type Lock struct {
	Nodes []exhibit.Conn
	Key   string
}

// release deletes the key where it has the value.
const release = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`

// TryLock takes the lock on all nodes with the same value, and has it if a majority agreed while the lease lasts. It
// returns how long the lock may be used. On failure it releases everywhere.
func (l *Lock) TryLock(ctx context.Context, value string, lease time.Duration) (validity time.Duration, ok bool) {
	began := time.Now()
	granted := 0
	for _, node := range l.Nodes {
		// A node that does not answer has not granted.
		if got, err := exhibit.OK(
			node.Do(ctx, "SET", l.Key, value, "NX", "PX", strconv.FormatInt(lease.Milliseconds(), 10))); err == nil &&
			got {
			granted++
		}
	}
	drift := lease/100 + 2*time.Millisecond
	validity = lease - time.Since(began) - drift
	if granted > len(l.Nodes)/2 && validity > 0 {
		return validity, true
	}
	l.Unlock(ctx, value)
	return 0, false
}

// Unlock releases on all nodes, also on those that seemed to refuse: their answer may have been lost.
func (l *Lock) Unlock(ctx context.Context, value string) {
	for _, node := range l.Nodes {
		_, _ = node.Do(ctx, "EVAL", release, "1", l.Key, value) // a node that is away forgets the key by its lease
	}
}
