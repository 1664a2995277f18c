// What an engine keeps of requests that it has ended: tombstones, and below releases that a server refuses.
//
// Tombstones are requests that are over, so that late copies of them take nothing. Each engine keeps one table of these
// beside its requests.

package enginekit

import (
	"time"
)

const (
	// endedKept is how many ended requests are remembered. Copies that an engine itself may have left under way are
	// refused by its server, or cannot exist; these are for callers that send one.
	endedKept = 1024

	// sweepLeast is the number of undone requests from which on expired ones are looked for.
	sweepLeast = 64
)

// Tombstones remembers requests that are over, so that a late copy of one is refused. ID is what names a request;
// Epitaph is what the engine wants to know of its end, or struct{}.
//
// It keeps the 1,024 requests that ended last ([Tombstones.Bury]), and each undone one until its time is over
// ([Tombstones.BuryUntil]). It grows as it is used: an engine that has ended nothing pays for nothing.
//
// The zero value is empty and ready. It must not be copied after its first use. It is not safe for concurrent use: the
// engine's own mutex guards it.
type Tombstones[ID comparable, Epitaph any] struct {
	ended map[ID]Epitaph
	ring  []ID // the IDs in ended; once there are endedKept, the oldest is at next
	next  int

	undone map[ID]time.Time // until when, on the monotonic clock
	sweep  int              // at this many undone IDs, expired ones are removed
}

// Bury remembers that the request has ended, and how. A request that is remembered already keeps its first epitaph. The
// oldest is forgotten when there are more than 1,024. It takes constant time.
func (t *Tombstones[ID, Epitaph]) Bury(id ID, how Epitaph) {
	if _, has := t.ended[id]; has {
		return
	}
	if t.ended == nil {
		t.ended = make(map[ID]Epitaph) // without a size: room for all would cost more than a release
	}
	t.ended[id] = how
	if len(t.ring) < endedKept {
		t.ring = append(t.ring, id)
		return
	}
	delete(t.ended, t.ring[t.next])
	t.ring[t.next] = id
	t.next = (t.next + 1) % endedKept
}

// BuryUntil remembers until that instant that the request was undone: now plus [driver.Release.Horizon], after which no
// copy can come. A later call for the same request replaces the instant. None is forgotten before its time, however
// many there are. It takes constant time on average.
func (t *Tombstones[ID, Epitaph]) BuryUntil(id ID, until time.Time) {
	if t.undone == nil {
		t.undone = make(map[ID]time.Time)
	}
	if len(t.undone) >= t.sweep {
		now := time.Now()
		for other, over := range t.undone {
			if !now.Before(over) {
				delete(t.undone, other)
			}
		}
		t.sweep = 2*len(t.undone) + sweepLeast // so that as many additions pay for a walk
	}
	t.undone[id] = until
}

// Has reports whether the request is remembered, in either way.
func (t *Tombstones[ID, Epitaph]) Has(id ID) bool {
	if _, ended := t.ended[id]; ended {
		return true
	}
	until, undone := t.undone[id]
	return undone && time.Now().Before(until)
}

// Epitaph returns how a request that was given to Bury has ended. It reports false for all others, the undone ones
// included.
func (t *Tombstones[ID, Epitaph]) Epitaph(id ID) (how Epitaph, ended bool) {
	how, ended = t.ended[id]
	return how, ended
}

// Releases that a server refuses, and what that means for the session they are in. Engines whose locks live and die
// with a session keep one of these for each.

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
