package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// loss is one time that a holder was told that its hold was lost.
type loss struct {
	at     history.Instant
	reason interlock.LostReason
	known  history.Instant // its deadline, as it was known at the request, or a moment before; 0 if that is not known
	ended  history.Instant // when it was over, by its own clock if that came first; 0 if that is not known
}

// tell takes in that the holder was told of a loss, if e says that.
func (h *hold) tell(e *history.Event, known history.Instant) {
	if e.Reason != "" {
		l := loss{at: e.At, reason: interlock.LostReason(e.Reason), known: known, ended: known}
		if e.Op == history.Turn { // it may take long, and the hold was renewed meanwhile
			l.ended = e.Deadline
		}
		h.told = append(h.told, l)
	}
}

// checkLosses is K6: without a fault nothing is lost, and under faults nobody is told of a loss that has no cause.
func (r *record) checkLosses(f *Figures) *Verdict {
	v := &Verdict{
		Check: "K6", Claim: "without a fault no hold is lost, and with faults no loss is told without a cause",
	}
	calm := r.calm()
	for _, h := range r.holds {
		if h.lost {
			f.Losses++
		}
		if h.fixed {
			continue
		}
		if calm {
			f.CalmHeld += max(0, h.sure.Sub(h.from))
		}
		found, spared := len(v.Faults), false
		for _, l := range h.losses() {
			switch why := r.without(h, l); {
			case why == "":
			case l.isOver() && r.starved(l.end()): // it may be told again, long after that
				spared = true
			case len(v.Faults) == found: // a hold is one case, however often its holder is told
				v.fault("%v: it was told at %v after the begin that it was lost (%s), %s", h, l.at.Sub(r.about.Begin),
					l.reason, why)
			}
		}
		broken := len(v.Faults) > found
		if v.judged(spared && !broken); broken && calm {
			f.FalseLosses++
		}
	}
	return v
}

// losses are what the holder was told. A history may be so old that it has no reasons: then it is only known that there
// was a loss.
func (h *hold) losses() []loss {
	if len(h.told) == 0 && h.lost {
		return []loss{{at: h.lostAt, reason: interlock.LostUnconfirmed}}
	}
	return h.told
}

// isOver reports whether the holder had to take its hold for over by its own clock, whatever the engine knew: that is
// so when nothing was confirmed for a lease.
func (l loss) isOver() bool {
	return l.reason == interlock.LostUnconfirmed || l.reason == interlock.LostSuspended ||
		l.known != 0 && l.known <= l.at
}

// end is when the hold was over, or when its holder was told of that if it was not.
func (l loss) end() history.Instant {
	if l.ended == 0 {
		return l.at
	}
	return min(l.at, l.ended)
}

// without says why the loss has no cause, or nothing if it has one. An engine that says before the deadline that a hold
// is lost must have ended it itself: that requests and answers are lost is no cause of that.
func (r *record) without(h *hold, l loss) string {
	switch {
	case r.calm():
		return "without a fault"
	case l.reason == interlock.LostBroken || l.reason == interlock.LostAdopted:
		return "and nobody did that"
	case r.hit(h, h.call, l.at, r.endsHolds):
		return ""
	case !l.isOver():
		return fmt.Sprintf("%v before its deadline, and nothing had ended it", l.known.Sub(l.at))
	case r.hit(h, l.end().Add(-r.about.Lease), l.end(), keepsAway):
		return ""
	}
	return "and nothing had kept it from being renewed"
}

// hit reports whether one of these faults was done to the servers, or to the holder's process, between two instants, or
// had not healed by then.
func (r *record) hit(h *hold, from, to history.Instant, of func(target.Fault) bool) bool {
	return slices.ContainsFunc(r.blows, func(b run.Blow) bool {
		heals := settles
		if b.Proc < 0 {
			heals += r.about.Heal
		}
		return (b.Proc < 0 || b.Proc == h.proc) && of(b.Fault) && b.From < to && from < b.To.Add(heals)
	})
}

// endsHolds reports whether the engine may end holds under a fault, whatever their holders have confirmed: because it
// forgets them, or they are deleted, or their sessions end.
func (r *record) endsHolds(f target.Fault) bool {
	switch _, broken := r.target.Broken[f]; {
	case broken:
		return true
	case f == target.DiskFull: // what it refuses to give back is given back by the end of a session
		return r.about.Sessions
	}
	return r.target.Connected && (f.TakesProxies() || f.StopsServers())
}

// keepsAway reports whether a client's requests or their answers may be kept away for as long as the fault lasts.
func keepsAway(f target.Fault) bool { return f != target.LoseEnds && f != target.Forget }
