package check

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
)

const (
	// settles is how long a process may need to get going after it stood still, or a machine with more to do than processors.
	settles = 200 * time.Millisecond

	// lateness is how late a call may return after its context, and what a protected request may be late after its deadline
	// because the processor was taken away between the look and the record.
	lateness = 50 * time.Millisecond
)

// checkTokens is K3: a later acquisition has a larger token. Of two only those are compared of which one had returned
// before the other was asked for.
func (r *record) checkTokens() *Verdict {
	v := &Verdict{Check: "K3", Claim: "tokens grow with each acquisition and are never given twice"}
	alone := r.alone() // readers and permits come beside each other
	byCall := slices.Clone(alone)
	slices.SortFunc(byCall, func(a, b *hold) int { return int(a.call - b.call) })
	newest, seen, next := map[string]*hold{}, map[string]map[uint64]*hold{}, 0
	for _, h := range byCall {
		for ; next < len(alone) && alone[next].from < h.call; next++ {
			if g := alone[next]; newest[g.name] == nil || g.token > newest[g.name].token {
				newest[g.name] = g
			}
		}
		v.Of++
		if g := newest[h.name]; g != nil && h.token <= g.token {
			v.fault("%v was granted after %v", h, g)
		}
		if seen[h.name] == nil {
			seen[h.name] = map[uint64]*hold{}
		}
		if g := seen[h.name][h.token]; g != nil {
			v.fault("%v and %v", h, g)
		}
		seen[h.name][h.token] = h
	}
	return v
}

// checkExclusion is K4: no two holders of a lock were sure of it at the same time. A holder is sure from the return of Lock
// until it last looked whether the hold lasts and found that it does.
func (r *record) checkExclusion() *Verdict {
	v := &Verdict{Check: "K4", Claim: "no two holders are sure of a lock at once", Excused: r.excuse()}
	byStart := r.alone()
	slices.SortFunc(byStart, func(a, b *hold) int { return int(a.from - b.from) })
	latest := map[string]*hold{}
	for _, h := range byStart {
		v.Of++
		g := latest[h.name]
		if g != nil && h.from < g.sure {
			v.fault("%v from %v after the begin; %v was sure until %v later", h, h.from.Sub(r.about.Begin), g, g.sure.Sub(h.from))
		}
		if g == nil || h.sure > g.sure {
			latest[h.name] = h
		}
	}
	return v
}

// alone returns the holds of mutexes.
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

// checkBelief is K5: nobody begins a request under a lock after the deadline that it knows.
func (r *record) checkBelief() *Verdict {
	v := &Verdict{Check: "K5", Claim: "no request under a lock begins after its deadline"}
	for _, h := range r.holds {
		v.Of++
		for _, e := range h.late {
			if late := e.At.Sub(e.Deadline); late > lateness && !r.stood(h.proc, e.Deadline, e.At) {
				v.fault("%v: a %s began %v late", h, e.Op, late)
			}
		}
	}
	return v
}

// checkLosses is K6: without a fault nothing is lost.
func (r *record) checkLosses(f *Figures) *Verdict {
	v := &Verdict{Check: "K6", Claim: "without a fault no hold is lost"}
	calm := !slices.ContainsFunc(r.about.Faults, func(f target.Fault) bool { return f != target.None })
	for _, h := range r.holds {
		if h.lost {
			f.Losses++
		}
		if !calm || h.fixed {
			continue
		}
		v.Of++
		if h.lost && !r.starved(h) {
			v.fault("%v", h)
		}
	}
	if !calm {
		return nil
	}
	return v
}

// checkProgress is K7: when the faults are over everybody gets a lock again.
func (r *record) checkProgress(f *Figures) *Verdict {
	if r.about.Long { // then nobody comes back
		return nil
	}
	v := &Verdict{Check: "K7", Claim: "after the last fault every goroutine gets a lock again"}
	got := map[[2]int]bool{}
	for _, h := range r.holds {
		if h.from > r.about.Quiet {
			got[[2]int{h.proc, h.gor}] = true
		}
	}
	for proc := range r.about.Processes {
		for gor := range r.about.Goroutines {
			v.Of++
			if !got[[2]int{proc, gor}] {
				v.fault("process %d, goroutine %d", proc, gor)
			}
		}
	}
	for _, b := range r.blows {
		if after, ok := r.nextGrant(b.To); ok {
			f.SlowestAfter = max(f.SlowestAfter, after)
		}
	}
	return v
}

// nextGrant is how long after an instant the next lock was granted to anybody.
func (r *record) nextGrant(at history.Instant) (time.Duration, bool) {
	i, _ := slices.BinarySearchFunc(r.holds, at, func(h *hold, at history.Instant) int { return int(h.from - at) })
	if i == len(r.holds) {
		return 0, false
	}
	return r.holds[i].from.Sub(at), true
}
