package check

import (
	"cmp"
	"slices"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/worker"
)

// span is a time in which a client wanted a lock, with at least one goroutine at each instant.
type span struct{ from, to history.Instant }

// with is what s and o have in common; it ends before it begins if that is nothing.
func (s span) with(o span) span { return span{max(s.from, o.from), min(s.to, o.to)} }

// client is one of a process: its only one, or of an engine inside of the process one of several.
type client struct{ proc, of int }

func (r *record) client(proc, gor int) client { return client{proc, gor % max(1, r.about.Clients)} }

// line is who may stand in for whom: the goroutines of a client that want the same lock.
type line struct {
	client client
	name   string
}

// checkOrder finds who was overtaken, in a run without faults. A client stands in an engine's queue once for each lock,
// when one of its goroutines wants it and none has it, and who comes meanwhile may take the place of that one. So
// nobody goes before others whose client did not want the lock when they began to wait; and of a client nobody goes
// before who came earlier, unless one of them has a name and so stands in the engine's queue by itself.
func (r *record) checkOrder(v *Verdict) {
	wanted := r.wants(waitsOf(r.events))
	byName := map[string][]*hold{}
	for _, h := range r.alone() {
		byName[h.name] = append(byName[h.name], h)
	}
	delete(byName, worker.Conditional) // who is signalled comes in by another way
	for name, holds := range byName {
		for i, h := range holds {
			v.Of++
			since := r.since(h, holds[:i])
			for _, g := range slices.Backward(holds[:i]) { // in the order of their grants
				if g.from <= h.call {
					break
				}
				if !h.several && r.overtakes(g, h, since, wanted[line{r.client(g.proc, g.gor), name}]) &&
					!r.heldUp(since, h.from) {
					v.fault("%v waited for %v while %v came later and went before", h, h.from.Sub(since), g)
				}
			}
		}
	}
}

// since is from when on h's client stood in line for it: from the call, or the end of what the client held by then.
func (r *record) since(h *hold, before []*hold) history.Instant {
	since := h.call
	for _, g := range before {
		if r.client(g.proc, g.gor) == r.client(h.proc, h.gor) {
			since = max(since, g.sure, g.released, g.lostAt)
		}
	}
	return since
}

// overtakes reports whether g, which was granted before h and after h's call, had come later. h's client stood in line
// since then: its request may have been on the way for as long as a process may be away that heldUp lets pass, and
// while others on the way were not run.
func (r *record) overtakes(g, h *hold, since history.Instant, wanted []span) bool {
	slack := r.about.Lease / 4
	if r.client(g.proc, g.gor) == r.client(h.proc, h.gor) {
		return g.fixed == h.fixed && !g.several && !g.named && !h.named &&
			g.call > h.call.Add(slack+r.lagged(h.call, g.call))
	}
	if g.from <= since {
		return false
	}
	i, found := slices.BinarySearchFunc(wanted, g.call, func(s span, at history.Instant) int {
		return cmp.Compare(s.from, at)
	})
	if !found {
		i-- // the last that began before
	}
	return i >= 0 && wanted[i].from > since.Add(slack+r.lagged(since, wanted[i].from))
}

// wants lists when each client wanted which mutex.
func (r *record) wants(waits []*wait) map[line][]span {
	all := map[line][]span{}
	for _, w := range waits {
		if w.share == "" && w.to != 0 {
			of := line{r.client(w.proc, w.gor), w.name}
			all[of] = append(all[of], span{w.from, w.to})
		}
	}
	for of, spans := range all {
		all[of] = joined(spans)
	}
	return all
}

// joined makes one of those that overlap.
func joined(spans []span) (all []span) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if n := len(all); n > 0 && s.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, s.to)
		} else {
			all = append(all, s)
		}
	}
	return all
}
