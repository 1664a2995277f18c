package sqlsession

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

const (
	// releasedKept is how many IDs are remembered of holds that have ended. A copy of a request cannot be on its way for
	// long here: between its caller and this table there is no network.
	releasedKept = 1024

	// sweepLeast is at how many undone IDs those are looked for whose horizon has passed.
	sweepLeast = 64
)

// epitaph says how a request has ended. The zero value says that it has not.
type epitaph struct {
	released bool
	undone   bool
	until    time.Time // of an undone one: how long its copies are refused

	reason driver.LostReason // of a hold that was lost
	cause  error
	token  uint64
}

func (p epitaph) is() bool { return p.released || p.undone || p.reason != "" }

// tombstones remembers the IDs that must not be granted again. The zero value is empty. Guarded by Core.mu.
type tombstones struct {
	ended map[string]epitaph // released or lost
	ring  []string           // the IDs in ended, the oldest at next
	next  int

	undone map[string]time.Time // until when
	sweep  int                  // at this many undone IDs, those over are forgotten
}

func (t *tombstones) has(id string) bool {
	if _, ok := t.ended[id]; ok {
		return true
	}
	until, ok := t.undone[id]
	return ok && time.Now().Before(until)
}

// of is what a release of something that is not there says.
func (t *tombstones) of(r *driver.Release) error {
	p, ok := t.ended[r.ID]
	if !ok || p.reason == "" {
		return gone(r.Key)
	}
	return &driver.LostError{Kind: r.Kind, Name: r.Name, Token: p.token, Reason: p.reason, Cause: p.cause}
}

func (t *tombstones) bury(id string, p epitaph) {
	if p.undone {
		t.buryUndone(id, p.until)
		return
	}
	if t.ended == nil {
		t.ended = make(map[string]epitaph) // it grows: room for all would be made at the first release
		t.ring = make([]string, releasedKept)
	}
	delete(t.ended, t.ring[t.next])
	t.ring[t.next] = id
	t.ended[id] = p
	t.next = (t.next + 1) % releasedKept
}

func (t *tombstones) buryUndone(id string, until time.Time) {
	if t.undone == nil {
		t.undone = make(map[string]time.Time)
	}
	if len(t.undone) >= t.sweep {
		now := time.Now()
		for other, over := range t.undone {
			if !now.Before(over) {
				delete(t.undone, other)
			}
		}
		t.sweep = 2*len(t.undone) + sweepLeast // so that a walk is paid by as many additions
	}
	t.undone[id] = until
}
