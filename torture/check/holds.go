package check

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
	"github.com/interlock-go/interlock/torture/worker"
)

const (
	// settles is how long a process may need to get going after it stood still, or a machine with
	// more to do than processors.
	settles = 200 * time.Millisecond

	// lateness is how late a call may return after its context, and what a protected request may be late after its
	// deadline because the processor was taken away between the look and the record.
	lateness = 50 * time.Millisecond

	// raceFactor is how much later that may be under the race detector.
	raceFactor = 4

	// notable is how long a process must not have been run for that to count by itself.
	notable = 20 * time.Millisecond
)

func (r *record) lateness() time.Duration {
	if r.about.Raced {
		return raceFactor * lateness
	}
	return lateness
}

// checkTokens is K3: a later acquisition has a larger token. Of two only those are compared of which one had returned
// before the other was asked for.
func (r *record) checkTokens(f *Figures) *Verdict {
	v := &Verdict{
		Check: "K3", Claim: "tokens grow with each acquisition and are never given twice, also not to who comes back",
	}
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
			f.TokensBack++
			f.TokenStep = max(f.TokenStep, g.token-h.token)
		}
		if seen[h.name] == nil {
			seen[h.name] = map[uint64]*hold{}
		}
		switch g := seen[h.name][h.token]; {
		case g == nil:
		case g.proc == h.proc && g.life != h.life:
			v.fault("%v came back, and has the hold of its life %d before it was killed", h, g.life)
		default:
			v.fault("%v and %v", h, g)
		}
		seen[h.name][h.token] = h
	}
	return v
}

// checkBelief is K5: nobody begins a request under a lock after the deadline that it knows, and who loses a hold
// is told when that is over.
func (r *record) checkBelief() *Verdict {
	v := &Verdict{
		Check: "K5", Claim: "no request under a lock begins after its deadline, and a loss is told within 50 ms of it",
	}
	for _, h := range r.holds {
		found, spared := len(v.Faults), false
		late := func(from, to history.Instant, format string, args ...any) {
			switch {
			case to.Sub(from) <= r.lateness():
			case r.stood(h.proc, from, to):
				spared = true
			default:
				v.fault("%v: "+format, append([]any{h}, args...)...)
			}
		}
		end, told := r.told(h)
		late(end, told, "its end was told %v late, if at all", told.Sub(end))
		for _, e := range h.late {
			late(e.Deadline, e.At, "a %s began %v late", e.Op, e.At.Sub(e.Deadline))
		}
		v.judged(spared && len(v.Faults) == found)
	}
	return v
}

// told is when a hold ended that was not given back, and when its holder was told, or gave it back without a
// word; 0 and 0 if it lasted.
func (r *record) told(h *hold) (end, told history.Instant) {
	fixed := r.fixedEnd(h)
	switch {
	case h.lost && fixed != 0:
		return min(h.ended, fixed), h.lostAt
	case h.lost:
		return h.ended, h.lostAt
	case fixed != 0 && fixed < h.released:
		return fixed, h.released
	}
	return 0, 0
}

// fixedEnd is when a fixed lease ends, or 0. It is known from the grant on. But the deadline is then that of
// the session, if that has not been heard of for so long that it would end first, and moves on with the
// session's next sign of life.
func (r *record) fixedEnd(h *hold) history.Instant {
	switch {
	case !h.fixed || h.deadline == 0:
		return 0
	case r.about.Sessions:
		return h.from.Add(worker.FixedLease(r.about.Lease))
	}
	return h.deadline
}

// calm reports whether nothing was done to anybody.
func (r *record) calm() bool {
	return !slices.ContainsFunc(r.about.Faults, func(f target.Fault) bool { return f != target.None })
}
