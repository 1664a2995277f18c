package check

import (
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// heldUp reports whether, between the two instants, some process was not run for a quarter of the lease at once, or
// for a sixth of the time in all. What is done meanwhile takes several processes several times, and the server,
// which has no better machine.
func (r *record) heldUp(from, to history.Instant) bool {
	all := map[int]time.Duration{}
	for _, e := range r.lags {
		away := within(e, from, to)
		if all[e.Proc] += away; away > 0 && e.Took > r.about.Lease/4 || all[e.Proc] > to.Sub(from)/6 {
			return true
		}
	}
	return false
}

// stalled is how long, between the two instants, the servers' disk kept them from answering.
func (r *record) stalled(from, to history.Instant) (sum time.Duration) {
	for _, e := range r.disk {
		sum += within(e, from, to)
	}
	return sum
}

// within is for how much of the time between two instants what took so long until e went on.
func within(e history.Event, from, to history.Instant) time.Duration {
	return max(0, min(e.At, to).Sub(max(e.At.Add(-e.Took), from)))
}

// briefly is how long, between the two instants, the process or the coordinator was not run for moments that do not
// count by themselves: the larger sum, as the moments of both may be the same.
func (r *record) briefly(proc int, from, to history.Instant) time.Duration {
	sums := map[int]time.Duration{}
	for _, e := range r.short {
		sums[e.Proc] += within(e, from, to)
	}
	return max(sums[proc], sums[run.Coordinator])
}

// lagged is how long processes were not run between the two instants, all of them together.
func (r *record) lagged(from, to history.Instant) (sum time.Duration) {
	for _, e := range r.lags {
		sum += within(e, from, to)
	}
	return sum
}

// starved reports whether the machine was too busy for a renewal, and its answer, before a hold was lost at that
// instant, or its disk too slow. Nobody watches the disk before the run has begun.
func (r *record) starved(lost history.Instant) bool {
	from := lost.Add(-r.about.Lease)
	unwatched := r.target.Syncs && from < r.about.Begin
	return unwatched || r.heldUp(from, lost) || r.stalled(from, lost) > r.about.Lease/2
}

// stood reports whether the process stood still at some time between the two instants, or the machine was too busy:
// then some process, not always this one, has noticed that it was not run.
func (r *record) stood(proc int, from, to history.Instant) bool {
	for _, e := range r.lags {
		if e.At.Add(-e.Took-settles) < to && from < e.At.Add(settles) {
			return true
		}
	}
	for _, b := range r.blows {
		hit := b.Proc == proc && (b.Fault == target.Stop || b.Fault.Kills())
		if hit && b.From < to && from < b.To.Add(settles) {
			return true
		}
	}
	return false
}
