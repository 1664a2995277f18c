// Releases that a server refuses, and what that means for the session they are in. Engines whose locks live and die
// with a session keep one of these for each.

package enginekit

import "time"

// Refusals are what a session has left in the server because that refuses to take it back: a right was taken away, a
// password changed, the room is full. Each sign of life of the session would keep it there, so a lock that nobody holds
// would stay closed for as long as the process lives. Therefore a session with refusals grants nothing new, and ends
// with its last hold, or one lease after a refusal that still stands: its end needs nobody's right. If the server takes
// everything back in time, the session goes on as before.
//
// ID is what names a request. The zero value has no refusals. It is not safe for concurrent use: the engine's own mutex
// guards it.
type Refusals[ID comparable] struct {
	since map[ID]time.Time
	why   error // the latest
}

// Refused records that the server refuses to take back what the request has left. If it has done so before, the time
// counts from the first refusal: what is not answered meanwhile changes nothing.
func (r *Refusals[ID]) Refused(id ID, why error) {
	if r.since == nil {
		r.since = make(map[ID]time.Time)
	}
	if _, known := r.since[id]; !known {
		r.since[id] = time.Now()
	}
	r.why = why
}

// Settled records that nothing is left of the request any more. It reports whether that was the last refusal, so that
// the session grants again.
func (r *Refusals[ID]) Settled(id ID) (last bool) {
	if _, known := r.since[id]; !known {
		return false
	}
	delete(r.since, id)
	return len(r.since) == 0
}

// Err returns what the server says while the session must grant nothing new, and nil otherwise.
func (r *Refusals[ID]) Err() error {
	if len(r.since) == 0 {
		return nil
	}
	return r.why
}

// Spent reports whether the session must end now: nobody holds anything in it any more, or a refusal has stood for a
// lease. holds says whether somebody does. An engine asks before each sign of life.
func (r *Refusals[ID]) Spent(lease time.Duration, holds bool) bool {
	for _, since := range r.since {
		if !holds || time.Since(since) >= lease {
			return true
		}
	}
	return false
}
