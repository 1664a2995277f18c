// What a queue means: who is in, and which key the others must watch. enqueue.go and wait.go judge one request with it,
// break.go and inspect.go a whole queue.
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

// crowd is what counts of the queue keys before a request, holders and waiters, when it is decided whether the request
// is in. The zero value is the crowd before the first.
type crowd struct {
	size         int
	limit, taken int // of a semaphore: the limit of the first, and the permits of all that have the same

	writer, upgradeable bool // there is one
}

// add adds the next request of the queue.
//
// The first in the queue says what a semaphore's limit is. All others have the same, unless there are keys of earlier
// versions: there a request with another limit is about to remove its key again, and does not count.
func (c *crowd) add(r *record) {
	if c.size == 0 {
		c.limit = r.Limit
	}
	c.size++
	if r.Limit == c.limit {
		c.taken += r.Weight
	}
	c.writer, c.upgradeable = c.writer || r.Mode == "x", c.upgradeable || r.Mode == "u"
}

// admits reports whether a request behind the crowd is in.
//
// For a mutex and a read/write lock the position alone decides: nothing conflicting stands before the request. So a
// waiting writer keeps out the readers behind it, and nothing has to be written when a request gets in. A request for
// permits is in if it fits beside all before it.
func (c *crowd) admits(k driver.Kind, r *record) bool {
	switch {
	case c.size == 0:
		return true
	case onlyOne(k):
		return false
	case k == driver.KindSemaphore:
		return r.Limit == c.limit && c.taken+r.Weight <= c.limit
	}
	return !c.writer && r.Mode != "x" && !(c.upgradeable && r.Mode == "u")
}

// split tells holders from waiters, by the rule with which each request judges itself. A rule of its own here would
// show operators, or break, another holder than the waiters see.
func split(k driver.Kind, queue []queueKey) (holders, waiters []queueKey) {
	var before crowd
	for i := range queue {
		p := &queue[i]
		if before.admits(k, &p.record) {
			holders = append(holders, *p)
		} else {
			waiters = append(waiters, *p)
		}
		before.add(&p.record)
	}
	return holders, waiters
}

// judge says what the queue keys before a request mean for it. They are in the order of the queue; of a mutex, the
// first of all and the nearest are enough. prefix is what they all begin with.
//
// A waiter of a mutex or a read/write lock watches the nearest key in its way, which as a rule ends last of all. So a
// release wakes one waiter.
func judge(k driver.Kind, mine record, ahead []queueKey, prefix string) queueView {
	var before crowd
	for i := range ahead {
		before.add(&ahead[i].record)
	}
	switch {
	case before.admits(k, &mine):
		return queueView{granted: true}
	case k == driver.KindSemaphore:
		return before.watchPermits(&mine, ahead, prefix)
	}
	nearest := len(ahead) - 1
	for nearest > 0 && !onlyOne(k) && !conflicts(mine.Mode, ahead[nearest].record.Mode) {
		nearest--
	}
	return queueView{holder: ahead[0], watch: ahead[nearest].key, predecessor: ahead[nearest]}
}

// conflicts reports whether requests of these modes cannot be inside together: a writer with nothing, upgradeable
// readers not with each other.
func conflicts(a, b string) bool {
	return a == "x" || b == "x" || a == "u" && b == "u"
}

// watchPermits says what a request watches that does not fit. Only the first that does not fit watches all before it.
// Everybody behind it watches its predecessor, which rewrites its key when it gets in. Otherwise each release would
// wake all waiters.
func (c *crowd) watchPermits(mine *record, ahead []queueKey, prefix string) queueView {
	switch {
	case c.limit != mine.Limit:
		return queueView{conflict: c.limit, holder: ahead[0]}
	case c.taken <= c.limit: // all before it fit, so it is the first that does not
		return queueView{holder: ahead[0], watch: prefix, wide: true}
	default:
		return queueView{holder: ahead[0], watch: ahead[len(ahead)-1].key, puts: true}
	}
}
