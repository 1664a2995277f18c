package board

import (
	"slices"
	"time"
)

// Update is what a reader has missed: a whole board, or the change since the board that it has. Neither may be changed.
type Update struct {
	Since    uint64  // the revision that a Change begins at; 0 with a Board
	Revision uint64  // of the board that the reader has when it has taken this in
	Board    *Board  // the whole board, at first and after more than the Poller remembers; otherwise nil
	Change   *Change // otherwise
}

// Change is the difference between two boards of a Poller.
type Change struct {
	Taken     time.Time `json:"taken,omitzero"` // as in Board
	Tried     time.Time `json:"tried"`          // as in Board
	TookMs    int64     `json:"tookMs"`         // as in Board
	Truncated bool      `json:"truncated"`      // as in Board
	Error     string    `json:"error"`          // as in Board
	Err       error     `json:"-"`              // as in Board
	Stale     bool      `json:"stale"`          // as in Board
	Counts    Counts    `json:"counts"`         // as in Board

	Changed []Lock   `json:"changed"` // locks that are new or have changed, by name and kind
	Gone    []string `json:"gone"`    // ids of locks that are no longer on the board

	// Edges and Cycles replace those of the board. They are absent if nothing about them has changed, and an empty list
	// if there are none any more.
	Edges          []Edge     `json:"edges,omitzero"`
	EdgesTruncated bool       `json:"edgesTruncated"`  // as in Board
	Cycles         [][]string `json:"cycles,omitzero"` // as in Board

	Knows  *Knows  `json:"knows,omitempty"` // absent if nothing about it has changed
	Events []Event `json:"events"`          // new ones, newest first; to be put in front of those of the board
}

// update returns what a reader of that revision has missed.
func (h *history) update(revision uint64) Update {
	if revision == 0 || revision < h.oldest || revision > h.revision {
		return Update{Revision: h.revision, Board: h.board}
	}
	b := h.board
	c := &Change{
		Taken: b.Taken, Tried: b.Tried, TookMs: b.TookMs, Truncated: b.Truncated, Error: b.Error, Err: b.Err,
		Stale: b.Stale, Counts: b.Counts, Changed: []Lock{}, Gone: h.goneSince(revision),
		EdgesTruncated: b.EdgesTruncated,
		Events:         h.latest(revision),
	}
	for i, changed := range h.locks {
		if changed > revision {
			c.Changed = append(c.Changed, b.Locks[i])
		}
	}
	if h.graph > revision {
		c.Edges, c.Cycles = b.Edges, b.Cycles
	}
	if h.knows > revision {
		c.Knows = &b.Knows
	}
	return Update{Since: revision, Revision: h.revision, Change: c}
}

// goneSince returns the ids of locks that have left the board since that revision, without those that have come back.
func (h *history) goneSince(revision uint64) []string {
	ids := []string{}
	for i := len(h.gone) - 1; i >= 0 && h.gone[i].revision > revision; i-- {
		l := &h.gone[i].lock
		_, back := slices.BinarySearchFunc(h.board.Locks, l, func(x Lock, y *Lock) int { return compare(&x, y) })
		if !back {
			ids = append(ids, l.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Apply returns the board that a reader has who had b and has got the change: the one that a new reader would get. It
// costs as much as b has locks.
func (c *Change) Apply(b *Board) *Board {
	next := *b
	next.Taken, next.Tried, next.TookMs, next.Truncated = c.Taken, c.Tried, c.TookMs, c.Truncated
	next.Error, next.Err, next.Stale = c.Error, c.Err, c.Stale
	next.Counts, next.EdgesTruncated = c.Counts, c.EdgesTruncated
	if c.Edges != nil {
		next.Edges, next.Cycles = c.Edges, c.Cycles
	}
	if c.Knows != nil {
		next.Knows = *c.Knows
	}
	if len(c.Events) > 0 {
		next.Events = slices.Concat(c.Events, b.Events)
		next.Events = next.Events[:min(len(next.Events), keptEvents)]
	}
	gone := make(map[string]bool, len(c.Gone))
	for _, id := range c.Gone {
		gone[id] = true
	}
	next.Locks = make([]Lock, 0, len(b.Locks)+len(c.Changed))
	walk(b.Locks, c.Changed, func(i, j int) {
		switch {
		case j >= 0:
			next.Locks = append(next.Locks, c.Changed[j])
		case !gone[b.Locks[i].ID]:
			next.Locks = append(next.Locks, b.Locks[i])
		}
	})
	return &next
}

// jitter is how far the end of a lease may move without being another one. Engines work it out from what remains when
// they are asked, in whole milliseconds, so it is not the same twice. A renewal moves it much further.
const jitter = 50 * time.Millisecond

// same reports whether nothing has changed that anybody could see.
func same(x, y *Lock) bool {
	return x.Limit == y.Limit && x.Unreadable == y.Unreadable && (x.Waiters == nil) == (y.Waiters == nil) &&
		slices.Equal(x.Waiters, y.Waiters) && slices.EqualFunc(x.Holders, y.Holders, sameHolder)
}

func sameHolder(x, y Holder) bool {
	if x.Until.IsZero() != y.Until.IsZero() || x.Until.Sub(y.Until).Abs() > jitter {
		return false
	}
	x.Until = y.Until
	return x == y
}
