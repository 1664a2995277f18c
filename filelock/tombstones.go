package filelock

import "time"

// releasedKept is how many released IDs are remembered. A copy of a request cannot be on its way for long here: there
// is no network, only a goroutine of this process.
const releasedKept = 1024

// tombstones remembers the IDs that must not be granted again: those released last, and those undone until their
// horizon. The zero value is empty. Guarded by Driver.mu.
type tombstones struct {
	released map[string]struct{}
	ring     []string // the IDs in released, the oldest at next
	next     int

	undone map[string]time.Time // until when, on the monotonic clock
	sweep  int                  // at this many undone IDs, those over are forgotten
}

func (t *tombstones) has(id string) bool {
	if _, ok := t.released[id]; ok {
		return true
	}
	until, ok := t.undone[id]
	return ok && time.Now().Before(until)
}

func (t *tombstones) addReleased(id string) {
	if t.released == nil {
		t.released = make(map[string]struct{}) // it grows: room for all would be made at the first release
		t.ring = make([]string, releasedKept)
	}
	delete(t.released, t.ring[t.next])
	t.ring[t.next] = id
	t.released[id] = struct{}{}
	t.next = (t.next + 1) % releasedKept
}

func (t *tombstones) addUndone(id string, horizon time.Duration) {
	if t.undone == nil {
		t.undone = make(map[string]time.Time)
	}
	now := time.Now()
	if len(t.undone) >= t.sweep {
		for other, until := range t.undone {
			if !now.Before(until) {
				delete(t.undone, other)
			}
		}
		t.sweep = 2*len(t.undone) + 64 // so that a walk is paid by as many additions
	}
	t.undone[id] = now.Add(horizon)
}
