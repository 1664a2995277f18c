package check

import (
	"slices"

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
