package check

import (
	"cmp"
	"slices"
	"time"

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

// checkProgress is K7: when the faults are over everybody gets a lock again. The time for that allows for
// each to hold once, one after the other; who loses more than that to holds of what is shared, which last for
// long, may get none in it.
func (r *record) checkProgress(f *Figures) *Verdict {
	if r.about.Long { // then nobody comes back
		return nil
	}
	v := &Verdict{
		Check: "K7",
		Claim: "after the last fault every goroutine gets a lock again; without one nobody waits in vain, or is " +
			"overtaken",
	}
	got := map[[2]int]bool{}
	for _, h := range r.holds {
		if h.from > r.about.Quiet {
			got[[2]int{h.proc, h.gor}] = true
		}
	}
	for proc := range r.about.Processes {
		for gor := range r.about.Goroutines {
			v.Of++
			if !got[[2]int{proc, gor}] && r.kept(proc, gor) <= r.about.OneByOne() {
				v.fault("process %d, goroutine %d", proc, gor)
			}
		}
	}
	if r.calm() {
		r.checkPatience(v)
		r.checkTries(v)
		if r.about.Ordered {
			r.checkOrder(v)
		}
	}
	for _, b := range r.blows {
		if after, ok := r.nextGrant(b.To); ok {
			f.SlowestAfter = max(f.SlowestAfter, after)
		}
	}
	return v
}

// checkPatience finds who has waited for a mutex for as long as it could, without a fault. What is shared is held for
// long, so that others come, and the line for it may be too long for anybody's patience.
func (r *record) checkPatience(v *Verdict) {
	for _, e := range r.events {
		if e.Op != history.Acquire || e.Share != "" || e.Phase == history.Call {
			continue
		}
		waited := e.Took - r.stalled(e.At.Add(-e.Took), e.At)
		vain := e.Phase != history.OK && waited >= worker.Patience(r.about.Lease, r.about.Heal, r.about.OneByOne())
		excused := vain && r.heldUp(e.At.Add(-e.Took), e.At)
		if v.judged(excused); vain && !excused {
			v.fault("process %d, goroutine %d: %s was not got within %v: %s", e.Proc, e.Gor, e.Name, e.Took, e.Err)
		}
	}
}

// kept is for how much of the time after the faults a goroutine held what is shared, or stood in line for it behind
// others who held it. That nobody has it keeps nobody; nor does somebody who came later, but see mayPrecede.
func (r *record) kept(proc, gor int) time.Duration {
	calm := span{r.about.Quiet, r.about.End}
	var all []span
	for _, h := range r.holds {
		if h.proc == proc && h.gor == gor && h.share != "" {
			all = append(all, calm.with(h.span()))
		}
	}
	for _, w := range waitsOf(r.events) {
		if w.proc != proc || w.gor != gor || w.share == "" || w.to != 0 && w.to <= calm.from {
			continue
		}
		waited := span{w.from, cmp.Or(w.to, calm.to)}
		for _, h := range r.holds {
			if h.name == w.name && r.mayPrecede(h, w) {
				all = append(all, calm.with(waited).with(h.span()))
			}
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var sum time.Duration
	end := calm.from
	for _, s := range all {
		sum += max(0, s.to.Sub(max(s.from, end)))
		end = max(end, s.to)
	}
	return sum
}

// mayPrecede reports whether h, of what is shared, may be granted before who waits is: it was asked for no
// later, or not much, or the engine has no order, or keeps no place for that long, or the faults may have
// taken a place from a waiter.
func (r *record) mayPrecede(h *hold, w *wait) bool {
	keeps := r.target.Keeps
	return !r.about.Ordered || keeps > 0 && h.from.Sub(w.from) > keeps || w.from < r.about.Quiet ||
		h.call < w.from.Add(r.about.Lease/4)
}

// span is when h was held, as far as its holder knew.
func (h *hold) span() span {
	switch {
	case h.lost:
		return span{h.from, h.lostAt}
	case h.released != 0:
		return span{h.from, h.released}
	}
	return span{h.from, h.sure} // its process was killed
}

// nextGrant is how long after an instant the next lock was granted to anybody.
func (r *record) nextGrant(at history.Instant) (time.Duration, bool) {
	i, _ := slices.BinarySearchFunc(r.holds, at, func(h *hold, at history.Instant) int { return int(h.from - at) })
	if i == len(r.holds) {
		return 0, false
	}
	return r.holds[i].from.Sub(at), true
}
