package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
)

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
