package etcdlock

import "github.com/interlock-go/interlock/driver"

// queueView is what the queue means for one request, as of a revision.
type queueView struct {
	granted  bool
	conflict int      // the limit under which the semaphore is in use, if it is another than the request's
	holder   queueKey // who has the lock, if the request does not
	watch    string   // the key whose end lets the request look again
	puts     bool     // it looks again also when that key is rewritten
	wide     bool     // watch is a prefix instead
	keep     bool     // what has happened is wanted, and not only that something has
	revision int64    // as of which all this holds

	// Of a mutex; see lookAtPredecessor.
	predecessor queueKey // the one right before the request's own, whose key is watched
	second      bool     // and there was no other

	next bool // the holder alone is in front of the request
}

// judge says what the queue keys in front of a request mean for it. They are in the order of the queue; of a mutex, the
// first of all and the nearest are enough. prefix is that of them all.
//
// For a mutex and a read-write lock the position alone decides: nobody conflicting stands in front. So a writer that
// waits keeps out the readers behind it, and nothing has to be written when somebody gets in. Each watches the nearest
// that is in its way, which ends last of all as a rule, so that a release wakes one.
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

// conflicts reports whether requests of these modes cannot be inside together.
func conflicts(a, b string) bool {
	if a == "x" || b == "x" {
		return true
	}
	return a == "u" && b == "u"
}

// judgePermits does so for a semaphore: who fits beside all in front is in. Only the first that does not fit watches
// them all; everybody behind it watches its predecessor, which rewrites its key when it gets in. Otherwise each release
// would wake everybody.
//
// The first in the queue says what the limit is. Who brings another is about to take its key away again, and does not
// count.
func judgePermits(mine record, ahead []queueKey, prefix string) queueView {
	if len(ahead) == 0 {
		return queueView{granted: true}
	}
	limit := ahead[0].record.Limit
	if limit != mine.Limit {
		return queueView{conflict: limit, holder: ahead[0]}
	}
	taken, first := 0, true // first that does not fit
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
