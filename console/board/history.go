package board

import (
	"slices"
	"time"
)

const (
	// keptEvents is how many events a board has.
	keptEvents = 200
	// keptGone is how many locks are remembered that have gone, for readers that are behind.
	keptGone = 10_000
)

// history is the latest board of a Poller, and what is needed to tell a reader what it has missed. Each change makes a
// new board with the next revision.
type history struct {
	board    *Board
	revision uint64
	good     bool // the board's locks are of a look that succeeded

	locks  []uint64 // the revision of the last change of each lock of the board, in their order
	gone   []departure
	oldest uint64 // readers of earlier revisions have missed more than is remembered
	graph  uint64 // the revision of the last change of edges and cycles
	knows  uint64 // the revision of the last change of what the engine tells

	events  []Event // oldest first
	seq     uint64
	endings map[endingHold]*ending
}

// departure is a lock that has left the board.
type departure struct {
	lock     Lock // kind, name and id
	revision uint64
}

// look takes the board of a new look in, which began at the given time.
func (h *history) look(fresh *Board, began time.Time) {
	old := h.board
	h.revision++
	switch {
	case old == nil:
		h.locks = slices.Repeat([]uint64{h.revision}, len(fresh.Locks))
		h.graph, h.knows = h.revision, h.revision
	case fresh.Error != "" && h.good:
		fresh = outdated(old, fresh)
	default:
		h.compare(old, fresh)
	}
	if fresh.Error == "" {
		h.good = true
		h.forgetEndings(began)
	}
	h.show(fresh)
}

// outdated is the board after a look that failed: what was known before, and why nothing newer is.
func outdated(old, failed *Board) *Board {
	b := *old
	b.Tried, b.TookMs, b.Err, b.Error, b.Stale = failed.Tried, failed.TookMs, failed.Err, failed.Error, true
	return &b
}

// compare finds what has changed between two looks.
func (h *history) compare(old, fresh *Board) {
	if c := fresh.Counts; c.Held+c.Retained+c.Cooldown == 0 { // nobody shows now what the engine tells of holders
		fresh.Knows.Since, fresh.Knows.Token = old.Knows.Since, old.Knows.Token
	}
	revisions := make([]uint64, len(fresh.Locks))
	var events []Event
	walk(old.Locks, fresh.Locks, func(i, j int) {
		switch {
		case j < 0:
			h.leave(&old.Locks[i])
			if !beyond(fresh, &old.Locks[i]) {
				events = changesOf(events, &old.Locks[i], &Lock{}, fresh.Tried)
			}
		case i < 0:
			revisions[j] = h.revision
			if l := &fresh.Locks[j]; !beyond(old, l) {
				events = changesOf(events, &Lock{Kind: l.Kind, Name: l.Name}, l, fresh.Tried)
			}
		case same(&old.Locks[i], &fresh.Locks[j]):
			// The old one stays, so that many small steps of an instant are noticed once they sum up.
			fresh.Locks[j], revisions[j] = old.Locks[i], h.locks[i]
		default:
			revisions[j] = h.revision
			events = changesOf(events, &old.Locks[i], &fresh.Locks[j], fresh.Tried)
		}
	})
	h.locks = revisions
	if !slices.Equal(old.Edges, fresh.Edges) || !slices.EqualFunc(old.Cycles, fresh.Cycles, slices.Equal[[]string]) {
		h.graph = h.revision
	}
	if old.Knows != fresh.Knows {
		h.knows = h.revision
	}
	if !h.good { // then the old board lacks locks for no other reason than that the look failed
		return
	}
	for _, e := range events {
		h.seen(e, old.Taken, fresh.Tried)
	}
}

// beyond reports whether b may lack l only because it is full.
func beyond(b *Board, l *Lock) bool {
	return b.Truncated && (len(b.Locks) == 0 || compare(l, &b.Locks[len(b.Locks)-1]) > 0)
}

// seen adds an event that the looks have shown, unless it is the end of a hold that this program breaks: that is told
// by itself.
func (h *history) seen(e Event, after, now time.Time) {
	e.After, e.Time = after, now
	if e.Event == Released || e.Event == Ended {
		if ending := h.endings[holdOf(&e)]; ending != nil {
			ending.seen = append(ending.seen, e)
			return
		}
	}
	h.add(e)
}

// add numbers an event and keeps it.
func (h *history) add(e Event) {
	h.seq++
	e.Seq, e.revision = h.seq, h.revision
	h.events = append(h.events, e)
	if len(h.events) >= 2*keptEvents {
		h.events = append([]Event(nil), h.events[len(h.events)-keptEvents:]...)
	}
}

// tell adds an event that is known without a look.
func (h *history) tell(e Event) {
	h.revision++
	h.add(e)
	if h.board != nil {
		b := *h.board
		h.show(&b)
	}
}

// show makes b the latest board.
func (h *history) show(b *Board) {
	b.Events = h.latest(0)
	h.board = b
}

// latest returns the events that came after a revision, newest first.
func (h *history) latest(after uint64) []Event {
	latest := []Event{}
	for i := len(h.events) - 1; i >= 0 && len(latest) < keptEvents && h.events[i].revision > after; i-- {
		latest = append(latest, h.events[i])
	}
	return latest
}

// leave remembers that a lock has left the board.
func (h *history) leave(l *Lock) {
	h.gone = append(h.gone, departure{Lock{ID: l.ID, Kind: l.Kind, Name: l.Name}, h.revision})
	if len(h.gone) >= 2*keptGone {
		rest := h.gone[len(h.gone)-keptGone:]
		h.oldest = h.gone[len(h.gone)-keptGone-1].revision
		h.gone = append([]departure(nil), rest...)
	}
}
