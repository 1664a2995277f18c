package check

import (
	"github.com/interlock-go/interlock/torture/history"
)

// countDoubles counts the locks that were granted although another, by all that it could know, still had them. These are more than
// K4 counts, for which both have to have looked in that time, and most holders do not look. It is no claim: on an engine that frees the
// locks of a session that ends, the next may have one before the news of that has arrived.
func (r *record) countDoubles(f *Figures) {
	latest := map[string]*hold{}
	for _, h := range r.alone() { // in the order of their grants
		if h.never() {
			continue
		}
		g := latest[h.name]
		if g != nil && h.from < g.until() {
			f.Doubles++
		}
		if g == nil || h.until() > g.until() {
			latest[h.name] = h
		}
	}
}

// until is for how long h lasted by all that its holder could know. Of one that was killed that is as long as it was sure: some engines
// free a lock when its process ends.
func (h *hold) until() history.Instant { return max(h.sure, h.over) }

// ends takes in that h was given back, or that its holder was told of its loss, whichever comes first. It may have been over by then: one
// that stood still learns late that its lease has run out, and says that it has ended now. Then it counts to the last deadline that is recorded.
func (h *hold) ends(e *history.Event) {
	if h.over != 0 {
		return
	}
	h.over = known(e)
	if h.due != 0 && h.over < e.At {
		h.over = min(h.over, h.due)
	}
}
