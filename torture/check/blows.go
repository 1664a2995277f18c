package check

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// Hits is how often a fault was done, and how often of that to a holder.
type Hits struct{ Done, Holder int }

// countBlows counts the faults, of each kind and together.
func (r *record) countBlows(f *Figures) {
	f.ByFault = map[target.Fault]Hits{}
	for _, b := range r.blows {
		f.Blows++
		if b.Waits != "" {
			f.WaiterBlows++
		}
		f.addEnds(b.Ends)
		hits := f.ByFault[b.Fault]
		hits.Done++
		if r.hitsHolder(&b) {
			hits.Holder++
			if b.Proc >= 0 {
				f.HolderBlows++
			}
		}
		f.ByFault[b.Fault] = hits
	}
}

// hitsHolder reports whether the process that a fault was done to held a lock when it began; if it was done to the
// servers, or to everybody, whether somebody did.
func (r *record) hitsHolder(b *run.Blow) bool {
	return slices.ContainsFunc(r.holds, func(h *hold) bool {
		return (b.Proc < 0 || h.proc == b.Proc) && r.lasts(h, b.From)
	})
}

// lasts reports whether h lasted at that instant, as far as its holder knew.
func (r *record) lasts(h *hold, at history.Instant) bool {
	over := h.released != 0 && h.released <= at || h.lost && h.lostAt <= at
	return h.from <= at && !over && !r.killed(h.proc, h.from, at)
}

// Ends are how many requests to end something, by what they were.
type Ends map[register.Ending]int

// addEnds adds those of a fault, or of another run.
func (f *Figures) addEnds(o Ends) {
	if f.Ends == nil {
		f.Ends = Ends{}
	}
	for what, n := range o {
		f.Ends[what] += n
	}
}

// addHits adds those of another run.
func (f *Figures) addHits(o map[target.Fault]Hits) {
	if f.ByFault == nil {
		f.ByFault = map[target.Fault]Hits{}
	}
	for fault, more := range o {
		hits := f.ByFault[fault]
		f.ByFault[fault] = Hits{hits.Done + more.Done, hits.Holder + more.Holder}
	}
}

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

// touches joins the requests of the register to the holds under which they were made, and keeps who wrote the plain
// numbers. It tells apart what comes of a fault and what of a holder that overruns a fixed lease on purpose: that
// happens without any fault too, and so says nothing of what the nemesis did.
type touches struct {
	holds   map[stake]*hold
	writes  map[string][]bool // by name: of each write of the plain number, whether it was an overrun
	readsAt map[stake]int     // how many writes there were when a hold read the plain number last
}

// stake is what a request says of its hold. A nonce is of one acquisition alone, but who comes back after a
// wipe may have an old token.
type stake struct {
	name  string
	token uint64
	nonce string
}

func stakeOf(e *register.Entry) stake { return stake{e.Name, e.Token, e.Nonce} }

func (r *record) touches() *touches {
	t := &touches{holds: map[stake]*hold{}, writes: map[string][]bool{}, readsAt: map[stake]int{}}
	for _, h := range r.holds {
		t.holds[stake{h.name, h.token, h.nonce}] = h
	}
	return t
}

// overruns reports whether a request came after the end of a lease that was not to be renewed. What such a holder does
// before that, or a request that arrives late of a hold that was to be renewed, is none.
func (t *touches) overruns(e *register.Entry) bool {
	h := t.holds[stakeOf(e)]
	return h != nil && h.fixed && e.At >= h.deadline
}

// plain takes in a request of a plain number. It reports whether an update was lost by it, and whether an overrun had a
// part in that: it is the write itself, or one since its writer had read.
func (t *touches) plain(e *register.Entry) (lost, overrun bool) {
	k, before := stakeOf(e), t.writes[e.Name]
	if !e.Write {
		t.readsAt[k] = len(before)
		return false, false
	}
	mine := t.overruns(e)
	t.writes[e.Name] = append(before, mine)
	if e.Value == e.Before+1 {
		return false, false
	}
	since, read := t.readsAt[k]
	return true, mine || read && slices.Contains(before[since:], true)
}

// Causes counts what happened to holders that were overtaken, by what made them stale.
type Causes struct {
	Faults   int // it was to be renewed: a fault was the cause, or a machine that stood still
	Overruns int // it was to be overrun
}

// All is the sum.
func (c Causes) All() int { return c.Faults + c.Overruns }

func (c *Causes) add(overrun bool) {
	if overrun {
		c.Overruns++
	} else {
		c.Faults++
	}
}

func (c *Causes) addAll(o Causes) {
	c.Faults += o.Faults
	c.Overruns += o.Overruns
}
