package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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

// Delays are times of one kind.
type Delays []time.Duration

// enoughForP99 is how many there must be for what 99 of 100 do not exceed to be anything but the longest.
const enoughForP99 = 100

// String is the median, what 99 of 100 do not exceed if there are so many, and the longest; and how many there were.
func (d Delays) String() string {
	if len(d) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(d))
	at := func(share float64) time.Duration {
		return sorted[int(share*float64(len(sorted)-1)+0.5)].Round(time.Millisecond)
	}
	if len(d) < enoughForP99 {
		return fmt.Sprintf("%v / longest %v of %d", at(0.5), at(1), len(d))
	}
	return fmt.Sprintf("%v / %v / %v of %d", at(0.5), at(0.99), at(1), len(d))
}

// takeTimes measures how long what went wrong was felt.
func (r *record) takeTimes(f *Figures) {
	for _, c := range r.deaths(r.waits()) {
		f.AfterDeath = append(f.AfterDeath, c.next.from.Sub(c.at))
	}
	for _, b := range r.blows {
		switch b.Fault {
		case target.Failover, target.CutFailover, target.ClockFailover, target.LeaderMove:
			f.Failovers = append(f.Failovers, r.outage(b.From, b.To))
		case target.NodeKill, target.NodeStop, target.ServerKill, target.PowerCut, target.ServerStop, target.Partition,
			target.DiskFull, target.Depose:
			f.Outages = append(f.Outages, r.outage(b.From, b.To))
		}
	}
	f.LossTold, f.FaultTold = r.lossTold(), r.faultTold()
}

// outage is the longest time without any grant that a fault of the servers has caused.
func (r *record) outage(from, to history.Instant) (longest time.Duration) {
	i, _ := slices.BinarySearchFunc(r.holds, from, func(h *hold, at history.Instant) int {
		return cmp.Compare(h.from, at)
	})
	for last := from; i < len(r.holds) && last < to; i++ {
		longest = max(longest, r.holds[i].from.Sub(last))
		last = r.holds[i].from
	}
	return longest
}

// lossTold is how long after the end of their hold those were told that lost one that was to be renewed, and were
// running. That is what K5 bounds.
func (r *record) lossTold() (delays Delays) {
	for _, h := range r.holds {
		if end, told := r.told(h); h.lost && !h.fixed && end != 0 && !r.stood(h.proc, end, told) {
			delays = append(delays, max(0, told.Sub(end)))
		}
	}
	return delays
}

// faultTold is how long after a fault began those were told that lost their hold to it, and were running. It is longer:
// first the hold has to end, mostly with its lease.
func (r *record) faultTold() (delays Delays) {
	for _, e := range r.events {
		if e.Op != history.Lost || r.stood(e.Proc, e.At-1, e.At) {
			continue
		}
		h := slices.IndexFunc(r.holds, func(h *hold) bool {
			return h.proc == e.Proc && h.name == e.Name && h.token == e.Token
		})
		if h < 0 || r.holds[h].fixed {
			continue
		}
		for i := len(r.blows) - 1; i >= 0; i-- {
			b := r.blows[i]
			if b.From < e.At && b.To > r.holds[h].from && (b.Proc == e.Proc || b.Proc < 0) {
				delays = append(delays, e.At.Sub(max(b.From, r.holds[h].from)))
				break
			}
		}
	}
	return delays
}
