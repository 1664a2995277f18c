package check

import (
	"slices"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// checkExclusion is K4: no lock is granted while somebody else has it, by all that the holder can know. Where two
// holders are possible only those are against the claim of which both were sure, and the others are counted as double
// grants beside it. A holder is sure from the return of Lock until it last looked whether the hold lasts and found that
// it does.
func (r *record) checkExclusion(f *Figures) *Verdict {
	v := &Verdict{Check: "K4", Claim: "no lock is granted while somebody else has it", Excused: r.excuse()}
	if v.Excused != "" {
		v.Claim = "no two holders are sure of a lock at once"
	}
	surest, latest := map[string]*hold{}, map[string]*hold{}
	for _, h := range r.alone() { // in the order of their grants
		if h.never() {
			continue
		}
		// who was killed before it looked holds for no time that anybody knows, and so proves nothing
		if h.until() > h.from {
			v.Of++
		}
		s, g := surest[h.name], latest[h.name]
		sure, double := s != nil && h.from < s.sure, g != nil && h.from < g.until()
		if double {
			f.Doubles++
		}
		switch strict := v.Excused == ""; {
		case strict && double && r.isNews(g, h.from, g.until()):
			v.Of--
			v.Spared++
		case sure:
			v.fault("%v from %v after the begin; %v was sure until %v later", h, h.from.Sub(r.about.Begin), s,
				s.sure.Sub(h.from))
		case strict && double:
			v.fault("%v from %v after the begin; %v had it until %v later", h, h.from.Sub(r.about.Begin), g,
				g.until().Sub(h.from))
		}
		if s == nil || h.sure > s.sure {
			surest[h.name] = h
		}
		if g == nil || h.until() > g.until() {
			latest[h.name] = h
		}
	}
	return v
}

// isNews reports whether it was still news from one instant to another that g had ended. That can only be where the
// session behind the holds is a connection: the server frees the lock when it notices the end of that, and the holder
// hears of it at about the same time, be it a moment later. For longer than that, and the time for which it stood
// still, it is no news. What the engine itself says was given back had not ended, unless its connection was disturbed:
// then that may have been said when another had found that its session was over.
func (r *record) isNews(g *hold, from, to history.Instant) bool {
	if !r.target.Connected || g.gaveBack && !r.disturbed(g.proc, from, g.back) {
		return false
	}
	moment := r.lateness() + r.lagged(from, to)
	for _, b := range r.blows {
		if b.Proc == g.proc && b.Fault == target.Stop && b.From < to && from < b.To.Add(settles) {
			moment += min(b.To.Add(settles), to).Sub(max(b.From, from))
		}
	}
	return to.Sub(from) <= moment
}

// disturbed reports whether something was done to the connections of a process between two instants.
func (r *record) disturbed(proc int, from, to history.Instant) bool {
	return slices.ContainsFunc(r.blows, func(b run.Blow) bool {
		return b.Proc == proc && b.Fault.TakesProxies() && b.From < to && from < b.To
	})
}

// alone returns the holds of mutexes, in the order of their grants.
func (r *record) alone() []*hold {
	return slices.DeleteFunc(slices.Clone(r.holds), func(h *hold) bool { return h.share != "" })
}

// excuse says why two holders are possible, if they are under a fault of this run.
func (r *record) excuse() string {
	for _, f := range r.about.Faults {
		if why, broken := r.target.Broken[f]; broken {
			return why
		}
	}
	return ""
}

// until is how long h lasted by all that its holder could know. Of one that was killed that is as long as it was
// sure: some engines free a lock when its process ends.
func (h *hold) until() history.Instant { return max(h.sure, h.over) }

// ends takes in that h was given back, or that its holder was told of its loss, whichever comes first. It may have been
// over by then: one that stood still learns late that its lease has run out, and says that it has ended now. Then it
// counts to the last deadline that is recorded.
func (h *hold) ends(e *history.Event) {
	if h.over != 0 {
		return
	}
	h.over = known(e)
	if h.due != 0 && h.over < e.At {
		h.over = min(h.over, h.due)
	}
}
