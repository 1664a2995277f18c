package memlock

import (
	"fmt"
	"maps"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

func (h *history) queues() map[driver.Key][]*record {
	queues := make(map[driver.Key][]*record)
	for key, l := range h.s.locks {
		queues[key] = slices.Clone(l.queue)
	}
	return queues
}

// check checks all invariants after a step. With before, the queues of the state before, it also checks that grants
// came in turn.
func (h *history) check(before map[driver.Key][]*record) {
	h.checkSettled(before)
	queued, granted := 0, 0
	for key, l := range h.s.locks {
		queued += len(l.queue)
		for _, g := range l.groups {
			granted += len(g.holds)
		}
		if len(l.groups) == 0 {
			h.fail("%v is kept though nobody holds it", key)
		}
		h.checkHolders(l)
		h.checkHead(l)
	}
	if queued != h.s.queued || granted != len(h.s.leases) || queued+granted != len(h.s.records) {
		h.fail("%d queued and %d granted, but the books say %d and %d of %d",
			queued, granted, h.s.queued, len(h.s.leases), len(h.s.records))
	}
	maps.DeleteFunc(h.known, func(at ref, _ block) bool {
		return h.s.records[at] == nil && h.s.graves.tombs[at] == nil
	})
	for at, rec := range h.s.records {
		if h.s.graves.tombs[at] != nil {
			h.fail("%v is alive and buried", at)
		}
		if rec.phase != waiting {
			h.checkGrant(rec)
		}
	}
}

// checkHolders checks exclusion by weight.
func (h *history) checkHolders(l *lock) {
	writers, upgraders, used := 0, 0, 0
	for _, g := range l.groups {
		var in sum
		in.add(g)
		writers, upgraders, used = writers+min(in.writers, 1), upgraders+min(in.upgraders, 1), used+in.permits
		for _, hold := range g.holds {
			if !hold.at.After(h.now) {
				h.fail("%s of %v is still in at %v, its lease ended at %v", hold.ref.id, l.key, h.now, hold.at)
			}
		}
	}
	if writers > 0 && len(l.groups) > 1 {
		h.fail("%v has a writer among %d groups", l.key, len(l.groups))
	}
	if upgraders > 1 {
		h.fail("%v has %d upgradeable readers", l.key, upgraders)
	}
	if l.sized && l.limit > 0 && used > l.limit {
		h.checkNoMore(l, used)
	}
}

// checkNoMore checks that nothing was granted while more permits are out than the limit allows, because it was lowered.
// An adopted hold does not count as a grant, and an exclusive one takes no permits: its owner may enter again.
func (h *history) checkNoMore(l *lock, used int) {
	for _, g := range l.groups {
		for _, hold := range g.holds {
			_, seen := h.known[hold.ref]
			if !seen && !h.adopted[hold.ref] && hold.req.Mode != driver.Exclusive {
				h.fail("%s of %v was granted %d with %d of %d out", hold.ref.id, l.key, hold.req.Weight, used, l.limit)
			}
		}
	}
}

// checkHead checks that the head of the queue is not one that could be granted.
func (h *history) checkHead(l *lock) {
	if len(l.queue) == 0 {
		return
	}
	head := l.queue[0].req
	others := slices.DeleteFunc(slices.Clone(l.groups), func(g *group) bool { return isOwn(g, l.queue[0]) })
	var in sum
	for _, g := range others {
		in.add(g)
	}
	waits := in.writers > 0 || head.Mode == driver.Exclusive && len(others) > 0 || head.Mode == driver.Upgradeable &&
		in.upgraders > 0 ||
		head.Mode == driver.Shared && l.limit > 0 && in.permits+head.Weight > l.limit
	for _, w := range l.queue {
		if w.req.Mode == driver.Shared && l.limit > 0 && w.req.Weight > l.limit {
			h.fail("%s of %v waits for %d permits of %d", w.req.ID, l.key, w.req.Weight, l.limit)
		}
	}
	if !waits {
		h.fail("the head %s of %v waits for nobody", head.ID, l.key)
	}
}

// isOwn reports whether g belongs to the owner of head, so that it is not in its way.
func isOwn(g *group, head *record) bool {
	first := g.holds[0]
	if head.req.Named && head.req.Limit == 0 && first.phase == held && first.req.Named &&
		first.req.Owner == head.req.Owner {
		return true
	}
	return slices.ContainsFunc(g.holds, func(hold *record) bool { return hold.ref.id == head.beside })
}

// sum is what several groups hold, by mode.
type sum struct{ writers, upgraders, permits int }

func (s *sum) add(g *group) {
	for _, hold := range g.holds {
		switch hold.req.Mode {
		case driver.Exclusive:
			s.writers++
		case driver.Upgradeable:
			s.upgraders++
		case driver.Shared:
			s.permits += hold.req.Weight
		}
	}
}

// checkGrant checks that tokens grow, and that a grant stays what it was.
func (h *history) checkGrant(rec *record) {
	if known, ok := h.known[rec.ref]; ok {
		if known != rec.block {
			h.fail("%v had %+v and now has %+v", rec.ref, known, rec.block)
		}
		return
	}
	h.known[rec.ref] = rec.block
}

// checkSettled checks that new tokens grow in the order of the grants, and that nobody was overtaken.
func (h *history) checkSettled(before map[driver.Key][]*record) {
	for _, done := range h.s.settle() {
		h.trace = append(h.trace, fmt.Sprintf("%14s %s %s: %s", "then", done.ref.key.Kind, done.ref.id, name(done.err)))
		if done.err != nil || before == nil {
			continue
		}
		h.checkTurn(done, before[done.ref.key])
	}
	fresh := make(map[driver.Key][]block)
	for at, rec := range h.s.records {
		if _, seen := h.known[at]; !seen && rec.phase != waiting && rec.block.nonce == at.id {
			fresh[at.key] = append(fresh[at.key], rec.block)
		}
	}
	for key, blocks := range fresh {
		slices.SortFunc(blocks, func(a, b block) int { return int(int64(a.first) - int64(b.first)) })
		for _, b := range blocks {
			if b.first <= h.newest[key] || b.n < 1 || b.end() >= 1<<63 {
				h.fail("%v was granted %+v after %d", key, b, h.newest[key])
			}
			h.newest[key] = b.end()
		}
	}
}

// checkTurn checks that whoever was in front of a new holder is gone from the queue, unless the holder is in by right
// of its owner.
func (h *history) checkTurn(done settlement, before []*record) {
	rec := done.rec
	if rec.block.nonce != rec.ref.id || rec.group != nil && h.upgraded(rec) {
		return
	}
	for _, other := range before {
		if other == rec {
			return
		}
		if h.s.records[other.ref] != nil && other.phase == waiting {
			h.fail("%s was granted before %s, which is in front of it", rec.ref.id, other.ref.id)
		}
	}
}
