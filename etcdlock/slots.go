// The numbers in a session's keys, which are used again and again (see names.queueKey). enqueue.go takes one, entry.go
// gives it back.
//
// What the names of keys must guarantee: two requests of a session never share one at a time, and a name is not given
// to the next request while a creation for the last one may still arrive. The create revision tells the uses of one
// name apart. No state on the servers is involved: the session's number in the key keeps clients apart.

package etcdlock

// slots are the numbers in the keys that a session has for one lock. A mutex needs two, because a hold can be given
// back and asked for again in one step; more are for requests that wait at the same time. Driver.mu guards them.
type slots struct {
	free []int
	next int // the smallest that was never used
	used int // how many are in use, including those that are never given back
}

// occupy gives e a key of s that no other request has. The caller holds Driver.mu.
func (s *session) occupy(e *entry) {
	all := s.slots[e.r.Key]
	if all == nil {
		all = new(slots)
		s.slots[e.r.Key] = all
	}
	all.used++
	// A key that was used before is used again; see queueKey for why. A new number is taken only if none is free, so a
	// lock has as few keys as it ever needed at once.
	if n := len(all.free); n > 0 {
		e.slot, all.free = all.free[n-1], all.free[:n-1]
	} else {
		e.slot = all.next
		all.next++
	}
	e.session, e.queueKey, e.vacated = s, s.d.names.queueKey(e.r, s.id, e.slot), false
}

// vacate gives e's key back, if it has one. If a request to create the key may still be under way, it stays reserved
// until the session ends: the tomb refuses that request, but not for ever. The caller holds Driver.mu.
func (e *entry) vacate() {
	s := e.session
	if s == nil || e.vacated || e.open > 0 {
		return
	}
	e.vacated = true // the name stays, for a waiter behind it that learns of its end
	all := s.slots[e.r.Key]
	// With the last one the whole record goes, or a client would remember every lock that it has ever used in this
	// session. The next use begins at 0 again, at keys that the servers know already.
	all.used--
	all.free = append(all.free, e.slot)
	if all.used == 0 {
		delete(s.slots, e.r.Key)
	}
}
