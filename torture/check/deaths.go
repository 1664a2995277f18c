package check

import (
	"slices"
	"sort"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// change is the time for which a lock was free after a hold, until its next grant.
type change struct {
	held *hold
	dead bool // the holder was killed; otherwise it gave the lock back
	// when it ended, or the last of those was killed who had asked for the lock; of a release, not
	// before somebody wanted it
	at   history.Instant
	next *hold
}

// deaths finds, for each lock that a process held alone when it was killed, who was granted it next. If
// others who had asked for it were killed meanwhile, the time runs from the last of these deaths, because
// each of them may have had it.
func (r *record) deaths(waits waitsFor) (all []change) {
	for _, b := range r.blows {
		if !b.Fault.Kills() {
			continue
		}
		for _, h := range r.holds {
			if h.proc != b.Proc || h.from >= b.From || h.released != 0 && h.released < b.From || h.lost ||
				r.killed(b.Proc, h.from, b.From) {
				continue
			}
			c, ok := r.changeOf(h, b.From, waits)
			idle := ok && c.next.call.Sub(c.at) > r.about.Lease // nobody wanted it before it had come free
			if c.dead = true; ok && !idle {
				all = append(all, c)
			}
		}
	}
	return all
}

// releases finds, for each lock that was held alone and given back, who was granted it next, and how long it had
// been free for that one. If it was not free, it was held for somebody who does not know of it, for instance whose Lock
// had ended with its context.
func (r *record) releases(waits waitsFor) (all []change) {
	for _, h := range r.holds {
		if h.released == 0 || h.lost || h.fixed {
			continue
		}
		if c, ok := r.changeOf(h, r.gaveBack(h), waits); ok {
			c.at = max(c.at, r.wantedSince(waits, c))
			all = append(all, c)
		}
	}
	return all
}

// gaveBack is when the server heard at the latest that h was given back: who was killed while it asked for that may not
// have been heard before its death.
func (r *record) gaveBack(h *hold) history.Instant {
	for _, b := range r.blows {
		if !h.returned && b.Fault.Kills() && b.Proc == h.proc && b.From > h.released {
			return b.From
		}
	}
	return h.released
}

// changeOf says who was granted the lock of h next when h had ended. It reports false if that says nothing.
func (r *record) changeOf(h *hold, at history.Instant, waits waitsFor) (c change, ok bool) {
	holds := r.byName[h.name]
	after := func(end history.Instant) int { // the first that was granted later
		return sort.Search(len(holds), func(i int) bool { return holds[i].from > end })
	}
	next := after(at)
	// Who was granted it before the end had lost it, whatever it knew; or the next did not want it, but waited for a
	// signal; or it was shared.
	taken := after(h.from) < next
	if next == len(holds) || taken || holds[next].woken || !h.wasAlone() {
		return c, false
	}
	c = change{held: h, next: holds[next]}
	c.at = r.lastDeath(h.name, at, c.next.from, waits)
	return c, !r.maybeHeld(waits, c) && !r.maybeUnwanted(waits, c)
}

// maybeHeld reports whether somebody may have had the lock meanwhile who waited for a second one, which nobody records.
func (r *record) maybeHeld(waits waitsFor, c change) bool {
	return slices.ContainsFunc(waits[c.held.name], func(w *wait) bool {
		return w.first && w.under(c.at, c.next.from) && !r.killed(w.proc, w.from, c.at+1)
	})
}

// maybeUnwanted reports whether the next holder wanted it as its second, and nobody else waited for it until then: it
// may have been asked for only just before.
func (r *record) maybeUnwanted(waits waitsFor, c change) bool {
	second := slices.ContainsFunc(waits[c.held.name], func(w *wait) bool { return w.second && w.to == c.next.from })
	return second && r.wantedSince(waits, c) > c.at
}

// wantedSince is from when on somebody waited for the lock until its next grant, not as a second one.
func (r *record) wantedSince(waits waitsFor, c change) history.Instant {
	since := c.next.from
	for _, w := range waits[c.held.name] {
		if !w.second && w.from < since && (w.to == 0 || w.to >= c.next.from) && !r.killed(w.proc, w.from, c.next.from) {
			since = w.from
		}
	}
	return since
}

// wasAlone reports whether nobody else could hold the lock while h lasted.
func (h *hold) wasAlone() bool {
	return h.share == "" || h.share == history.Writes && len(h.modes) == 1
}

// checkDeaths is a part of K7: a lock comes free with the lease of a holder that was killed, and goes on when it is
// given back, however many of those who wanted it were killed, or gave up because their contexts had ended. Under other
// faults it may take longer.
func (r *record) checkDeaths(v *Verdict) {
	if v == nil ||
		slices.ContainsFunc(r.about.Faults, func(f target.Fault) bool { return f != target.None && !f.Kills() }) {
		return
	}
	v.Claim += "; no lock stays free for long behind the dead, or behind those who gave up"
	waits := r.waits()
	for _, c := range append(r.deaths(waits), r.releases(waits)...) {
		most, how := r.about.Lease+r.target.Again(r.about.Lease), "killed"
		if !c.dead {
			how = "given back"
			// Otherwise somebody had it who was killed, or it was not wanted at first, or the engine has not
			// said that it was given back.
			if c.at == c.held.released && c.held.gaveBack {
				most = r.target.Behind(r.about.Lease)
			}
		}
		if lasts, retained := r.outlives(&c); retained {
			most, how = lasts+r.target.Again(r.about.Lease), "retained by one who was killed"
		}
		took := c.next.from.Sub(c.at)
		late := took-r.stalled(c.at, c.next.from) > most+settles
		excused := late && r.stood(-1, c.at, c.next.from)
		if v.judged(excused); late && !excused {
			v.fault("%v was %s, and nobody was granted the lock for %v after that", c.held, how, took)
		}
	}
}

// killed reports whether the process was killed between two instants.
func (r *record) killed(proc int, from, to history.Instant) bool {
	for _, b := range r.blows {
		if b.Fault.Kills() && b.Proc == proc && from < b.From && b.From < to {
			return true
		}
	}
	return false
}

// lastDeath is when the last of those was killed who had asked for a lock, from the instant at
// until its next grant; or at.
func (r *record) lastDeath(name string, at, next history.Instant, waits waitsFor) history.Instant {
	last := at
	for _, b := range r.blows {
		if b.Fault.Kills() && last < b.From && b.From < next && slices.ContainsFunc(waits[name], func(w *wait) bool {
			return w.proc == b.Proc && w.under(b.From, b.From+1) && !r.killed(w.proc, w.from, b.From)
		}) {
			last = b.From
		}
	}
	return last
}

const (
	// leaseOfRetained is how long a lock that is retained stays so in an engine with leases when its client has died.
	leaseOfRetained = 2 * time.Second

	// unshortened is how long after a release the engine may still have the lease of the hold: the client does not
	// shorten it at once, and the request takes its time.
	unshortened = 10*time.Millisecond + lateness
)

// outlives reports whether the lock was retained after the hold by a process that was killed before the next grant, and
// how long it outlives that process. Then the time in which it was free runs from that death.
func (r *record) outlives(c *change) (lasts time.Duration, retained bool) {
	if r.about.Workload != run.Retain || c.dead {
		return 0, false
	}
	for _, b := range r.blows {
		if !b.Fault.Kills() || b.Proc != c.held.proc || b.From <= c.held.released || b.From >= c.next.from {
			continue
		}
		c.at = max(c.at, b.From)
		soon := b.From.Sub(c.held.released) <= unshortened+r.lagged(c.held.released, b.From)
		// Sessions are not shortened, and the requests of the other did not arrive for some time before its death.
		if soon || r.about.Sessions || b.Fault == target.KillAsking {
			return r.about.Lease, true
		}
		return min(leaseOfRetained, r.about.Lease), true
	}
	return 0, false
}

// takenOver counts the holds that began with nothing but a lock which the same client had retained: its next token, and
// nobody waited for it when it was given back.
func (r *record) takenOver() (n int) {
	if r.about.Workload != run.Retain {
		return 0
	}
	for _, holds := range r.byName {
		for i, h := range holds[1:] {
			last := holds[i]
			same := last.life == h.life && r.client(last.proc, last.gor) == r.client(h.proc, h.gor)
			if same && last.gaveBack && last.back < h.call && h.token == last.token+1 {
				n++
			}
		}
	}
	return n
}

// gaveWay counts the holders who were told that another process wants the lock.
func (r *record) gaveWay() (n int) {
	for _, e := range r.events {
		if e.Op == history.Wanted {
			n++
		}
	}
	return n
}

// checkTries finds who was told that a lock is held when nobody held it or waited for it, in a run without faults: that
// another process merely retains it is no reason.
func (r *record) checkTries(v *Verdict) {
	waits := r.waits()
	for _, e := range r.events {
		if !e.Try || e.Phase == history.Call {
			continue
		}
		vain := e.Phase == history.Fail && e.Late == 0 && !r.wasTaken(waits, &e)
		excused := vain && r.stood(e.Proc, e.At.Add(-e.Took), e.At)
		if v.judged(excused); vain && !excused {
			v.fault("process %d, goroutine %d: %s was free, and it was told after %v: %s", e.Proc, e.Gor, e.Name,
				e.Took, e.Err)
		}
	}
}

// wasTaken reports whether another goroutine may have held what e tried to get, or stood in line for it. One that gave
// up may have been granted it all the same, and holds it until that is settled.
func (r *record) wasTaken(waits waitsFor, e *history.Event) bool {
	from := e.At.Add(-e.Took)
	held := slices.ContainsFunc(r.byName[e.Name], func(h *hold) bool {
		s := h.span()
		return s.from < e.At && max(s.to, h.back) > from
	})
	return held || slices.ContainsFunc(waits[e.Name], func(w *wait) bool {
		me := w.proc == e.Proc && w.gor == e.Gor
		return !me && w.under(from.Add(-settles), e.At)
	})
}
