package memlock

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// adopt gives a hold, or a request that may not hold any more, to a new request. The mode and weight of that request do
// not count.
func (h *history) adopt() string {
	if len(h.ids) == 0 {
		return "nothing to adopt"
	}
	from := h.pick()
	r := h.request(from.key)
	r.Owner, r.Named, r.Try = "", false, true
	old := h.s.records[from]
	travels := old != nil && old.phase == held && !old.req.Named && len(old.group.holds) == 1
	var was record
	if old != nil {
		was = *old
	}
	rec, err := h.s.adopt(h.now, from.id, r)
	what := fmt.Sprintf("adopt %s %s as %s: %s", from.key.Kind, from.id, r.ID, entered(rec, err))
	switch malformed := errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrUnsupported); {
	case malformed && h.s.records[from] == old:
	case travels != (err == nil):
		h.fail("%s\nit could go on: %v", what, travels)
	case err != nil && (h.s.records[from] != old || h.s.records[ref{r.Key, r.ID}] != nil):
		h.fail("%s\nit has changed something", what)
	case err == nil:
		h.adopted[rec.ref] = true
		h.checkAdopted(what, &was, rec, r.Lease)
	}
	return what
}

// checkAdopted checks that an adopted hold is what it was, except for its ID, its token, and its end.
func (h *history) checkAdopted(what string, was, is *record, lease time.Duration) {
	h.t.Helper()
	if h.s.records[was.ref] != nil || h.s.graves.tombs[was.ref] == nil {
		h.fail("%s\nwhoever had it has it still, or is not known to have had it", what)
	}
	if is.phase != held || is.req.Mode != was.req.Mode || is.req.Weight != was.req.Weight ||
		is.req.LockDelay != was.req.LockDelay || !slices.Contains(h.s.locks[is.ref.key].groups, is.group) {
		h.fail("%s\nit was %+v and is %+v", what, was.req, is.req)
	}
	if is.block.first <= was.block.end() || is.block.nonce != is.ref.id {
		h.fail("%s\nits tokens were %+v and are %+v", what, was.block, is.block)
	}
	if is.at.Before(h.now.Add(lease)) || is.at.Before(was.at) {
		h.fail("%s\nit ends at %v, before at %v", what, is.at, was.at)
	}
}

// resize changes the limit of a semaphore, mostly one that is in use.
func (h *history) resize() string {
	key, limit := h.keys[2], 1+h.draw(5)
	most, before := 0, 0
	if l := h.s.locks[key]; l != nil && l.sized {
		before = l.limit
		for _, w := range l.queue {
			if w.req.Mode == driver.Shared {
				most = max(most, w.req.Weight)
			}
		}
	}
	err := h.s.resize(h.now, key, limit)
	what := fmt.Sprintf("resize %s to %d: %s", key.Kind, limit, name(err))
	if (err != nil) != (most > limit) {
		h.fail("%s\nsomebody waits for %d", what, most)
	}
	if err == nil {
		h.limit = limit
	} else {
		limit = before
	}
	if l := h.s.locks[key]; l != nil && l.sized && l.limit != limit {
		h.fail("%s\nthe limit is %d", what, l.limit)
	}
	return what
}
