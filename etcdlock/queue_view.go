// What a queue means for one request: whether it is in, and otherwise which key it must watch. enqueue.go, wait.go and
// break.go judge with it.
//
// This decides who has a lock; lookAtPredecessor only comes to the same answer by a shorter way. It is a function of
// the queue alone, without a clock and without a memory, so all clients come to the same decision from the same
// revision. wire.md has the same rules for other programs.

package etcdlock

import "github.com/interlock-go/interlock/driver"

// queueView is what the queue means for one request, as of a revision.
type queueView struct {
	granted  bool
	conflict int      // the limit in use, if it is another than the request's; else 0
	holder   queueKey // who has the lock, if not the request
	watch    string   // the key whose end lets the request look again
	puts     bool     // it looks again also when that key is rewritten
	wide     bool     // watch is a prefix
	keep     bool     // the events are wanted, not only the hint
	revision int64    // as of which all this holds; 0 before the first look

	// Of a mutex only; see lookAtPredecessor.
	predecessor queueKey // the queue key right before the request's own, which is watched
	second      bool     // there was no other one

	next bool // the holder alone is before the request
}

// judge says what the queue keys before a request mean for it. They are in the order of the queue; of a mutex, the
// first of all and the nearest are enough. prefix is what they all begin with.
//
// For a mutex and a read/write lock the position alone decides: nothing conflicting stands before the request. So a
// waiting writer keeps out the readers behind it, and nothing has to be written when a request gets in. Each watches
// the nearest key in its way, which as a rule ends last of all, so that a release wakes one waiter.
func judge(k driver.Kind, mine record, ahead []queueKey, prefix string) queueView {
	if k == driver.KindSemaphore {
		return judgePermits(mine, ahead, prefix)
	}
	for i := len(ahead) - 1; i >= 0; i-- {
		if onlyOne(k) || conflicts(mine.Mode, ahead[i].record.Mode) {
			return queueView{holder: ahead[0], watch: ahead[i].key, predecessor: ahead[i]}
		}
	}
	return queueView{granted: true}
}

// conflicts reports whether requests of these modes cannot be inside together: a writer with nothing, upgradeable
// readers not with each other.
func conflicts(a, b string) bool {
	if a == "x" || b == "x" {
		return true
	}
	return a == "u" && b == "u"
}

// judgePermits is judge for a semaphore: a request that fits beside all before it is in. Only the first that does not
// fit watches all of them. Everybody behind it watches its predecessor, which rewrites its key when it gets in.
// Otherwise each release would wake all waiters.
//
// The first in the queue says what the limit is. A request with another limit is about to remove its key again, and
// does not count.
func judgePermits(mine record, ahead []queueKey, prefix string) queueView {
	if len(ahead) == 0 {
		return queueView{granted: true}
	}
	limit := ahead[0].record.Limit
	if limit != mine.Limit {
		return queueView{conflict: limit, holder: ahead[0]}
	}
	taken, first := 0, true // first: this is the first that does not fit
	for i := range ahead {
		if ahead[i].record.Limit == limit {
			taken += ahead[i].record.Weight
			first = first && taken <= limit
		}
	}
	switch {
	case taken+mine.Weight <= limit:
		return queueView{granted: true}
	case first:
		return queueView{holder: ahead[0], watch: prefix, wide: true}
	default:
		return queueView{holder: ahead[0], watch: ahead[len(ahead)-1].key, puts: true}
	}
}
