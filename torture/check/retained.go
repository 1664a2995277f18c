package check

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

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
