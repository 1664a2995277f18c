package check

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
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

// checkUpdates is K1: what the register of the fence has at the end is what was added to it.
func (r *record) checkUpdates(f *Figures) *Verdict {
	v := &Verdict{Check: "K1", Claim: "no update of a fenced number is lost"}
	t := r.touches()
	for i := range r.log {
		switch e := &r.log[i]; {
		case e.Stale:
			f.Stale.add(t.overruns(e))
		case !e.Fenced:
			if e.Write {
				f.PlainWrites++
			}
			if lost, overrun := t.plain(e); lost {
				f.PlainLost.add(overrun)
			}
		case e.Write:
			f.Increments++
			v.Of++
			if e.Value != e.Before+1 {
				v.fault("%s: process %d with token %d wrote %d over %d", e.Name, e.Proc, e.Token, e.Value, e.Before)
			}
		}
	}
	if v.Of == 0 {
		v.Vacuous = "nothing was written"
	}
	return v
}

// marks are who passed the fence of one name: the newest writer, and the newest reader.
type marks struct{ writer, reader *register.Entry }

// checkFence is K2: once a holder has touched a fenced number, nobody older does. Readers do not keep each other away,
// and what each of them reads is the same as long as it passes.
func (r *record) checkFence() *Verdict {
	v := &Verdict{
		Check: "K2",
		Claim: "nobody older than the newest holder passes the fence, and no reader sees a write between two of " +
			"its reads",
	}
	newest, reads := map[string]*marks{}, map[stake]int{}
	for i := range r.log {
		e := &r.log[i]
		if !e.Fenced || e.Stale {
			continue
		}
		v.Of++
		m := newest[e.Name]
		if m == nil {
			m = &marks{}
			newest[e.Name] = m
		}
		m.pass(v, e)
		if !e.Shared {
			continue
		}
		if read, again := reads[stakeOf(e)]; again && read != e.Value {
			v.fault("%s: process %d with token %d read %d, and then %d", e.Name, e.Proc, e.Token, read, e.Value)
		}
		reads[stakeOf(e)] = e.Value
	}
	return v
}

// pass takes in a request that the fence let pass.
func (m *marks) pass(v *Verdict, e *register.Entry) {
	for _, last := range []*register.Entry{m.writer, m.reader} {
		if last == nil || last.Shared && e.Shared {
			continue
		}
		if e.Token < last.Token || e.Token == last.Token && e.Nonce != last.Nonce {
			v.fault("%s: process %d with token %d passed after process %d with token %d", e.Name, e.Proc, e.Token,
				last.Proc, last.Token)
		}
	}
	switch {
	case !e.Shared:
		m.writer = e
	case m.reader == nil || e.Token > m.reader.Token:
		m.reader = e
	}
}
