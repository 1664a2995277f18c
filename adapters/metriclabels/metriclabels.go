// Package metriclabels has what adapters for metrics agree on: the values that their labels may have. It is for
// packages promlock and otellock, and for an adapter of your own.
//
// A label must have few values, because each is a series in the memory of the program and of whatever collects it.
// Names of locks and owners are never labels. The class of a lock is one ([interlock.LockOptions].Class), and a program
// may put a name into it by mistake.
package metriclabels

import (
	"slices"
	"sync"

	"github.com/interlock-go/interlock"
)

// MostClasses bounds the classes that are told apart. A program that uses more has used them for names.
const MostClasses = 1000

// Other is the class of what is beyond the bound, and of locks that have none. It is also the reason of a loss for
// which package interlock has no word.
const Other = "other"

// Classes remembers which classes are told apart: the first [MostClasses] that it has seen. The zero value is empty. It
// is safe for concurrent use.
type Classes struct {
	mu   sync.RWMutex // guards seen
	seen map[string]bool
}

// Of returns the class in which an event of that class counts. It answers the same for a class each time, so a gauge
// that went up in one comes down in it.
func (c *Classes) Of(class string) string {
	if class == Other {
		return Other
	}
	c.mu.RLock()
	known, full := c.seen[class], len(c.seen) >= MostClasses
	c.mu.RUnlock()
	switch {
	case known:
		return class
	case full:
		return Other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[class] && len(c.seen) >= MostClasses { // another one was seen meanwhile
		return Other
	}
	if c.seen == nil {
		c.seen = make(map[string]bool)
	}
	c.seen[class] = true
	return class
}

// reasons are those of a loss that package interlock has words for.
var reasons = []interlock.LostReason{
	interlock.LostUnconfirmed, interlock.LostExpired, interlock.LostTaken, interlock.LostBroken, interlock.LostSession,
	interlock.LostSuspended,
}

// Reasons returns all values that [Reason] has.
func Reasons() []interlock.LostReason { return append(slices.Clone(reasons), Other) }

// Reason returns r if it is one of package interlock, and [Other] if not: an engine of a third party may have others,
// any number of them.
func Reason(r interlock.LostReason) interlock.LostReason {
	if slices.Contains(reasons, r) {
		return r
	}
	return Other
}
