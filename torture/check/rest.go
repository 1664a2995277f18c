package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// checkCalls is K8: a call returns when its context ends. In a run that is not judged by time, what
// is late is only counted.
func (r *record) checkCalls(f *Figures) *Verdict {
	v := &Verdict{
		Check: "K8", Claim: "a Lock, Upgrade, Downgrade or Wait returns within 50 ms of the end of its context",
	}
	for _, e := range r.events {
		if !isGrant(e.Op) && e.Op != history.Turn || e.Phase == history.Call {
			continue
		}
		if e.Op == history.Acquire {
			f.LongestWait = max(f.LongestWait, e.Took)
		}
		if e.Late == 0 {
			continue
		}
		since := e.At.Add(-e.Late)
		late := e.Late > r.lateness()+r.briefly(e.Proc, since, e.At)
		excused := late && (r.about.Untimed || r.stood(e.Proc, since, e.At))
		if v.judged(excused); late && !excused {
			v.fault("process %d, goroutine %d: %v late", e.Proc, e.Gor, e.Late)
		}
	}
	return v
}

// checkResidue is K9: when everybody has left, no lock is held, and no permit is missing.
func (r *record) checkResidue() *Verdict {
	v := &Verdict{
		Check: "K9", Claim: "when all have left no lock is held or waited for, and all permits are there",
		Of: r.about.Names,
	}
	for _, s := range r.about.Residue {
		v.fault("%s", s)
	}
	return v
}

// checkLeaks is K10: a process that ends in order has nothing left that it did not have at first.
func (r *record) checkLeaks() *Verdict {
	v := &Verdict{Check: "K10", Claim: "a process that ends leaves no goroutine, no descriptor and no connection"}
	for _, p := range r.about.Problems {
		v.fault("%s", p)
	}
	for _, e := range r.events {
		if e.Op != history.End {
			continue
		}
		v.Of++
		if e.Goroutines > 0 || e.Files > 0 || e.Sockets > 0 {
			v.fault("process %d: %d goroutines, %d descriptors, %d of them connections", e.Proc, e.Goroutines, e.Files,
				e.Sockets)
		}
	}
	return v
}

// Report is what all checks found in one run, or in several.
type Report struct {
	About    run.About
	Verdicts []*Verdict
	Figures  Figures
}

// Dir judges the run that has left the folder.
func Dir(dir string) (*Report, error) {
	r, err := load(dir)
	if err != nil {
		return nil, err
	}
	rep := &Report{About: r.about}
	f := &rep.Figures
	f.Grants, f.Ran = len(r.holds), r.about.End.Sub(r.about.Begin)
	f.TakenOver, f.GaveWay = r.takenOver(), r.gaveWay()
	r.countBlows(f)
	r.takeTimes(f)
	for _, v := range []*Verdict{
		r.checkUpdates(f), r.checkFence(), r.checkTokens(f), r.checkExclusion(f), r.checkBelief(), r.checkLosses(f),
		r.checkProgress(f), r.checkCalls(f), r.checkResidue(), r.checkLeaks(), r.checkShares(f),
	} {
		if v != nil {
			rep.Verdicts = append(rep.Verdicts, v)
		}
	}
	r.checkDeaths(rep.Find("K7"))
	return rep, nil
}

// OK reports whether no check is broken.
func (rep *Report) OK() bool {
	for _, v := range rep.Verdicts {
		if !v.OK() {
			return false
		}
	}
	return true
}

// Inconclusive says which checks could not have found anything, and why; and that the one fault of the run was never
// done, because it found nothing to be done to.
func (rep *Report) Inconclusive() (why []string) {
	if of := rep.About.Faults; len(of) == 1 && of[0] != target.None && rep.Figures.Blows == 0 {
		why = append(why, fmt.Sprintf("the fault %s was not done once", of[0]))
	}
	if rep.About.Workload == run.Retain && rep.Figures.TakenOver == 0 {
		why = append(why, "no lock was taken again that was retained")
	}
	if slices.Contains(rep.About.Faults, target.Depose) && rep.Figures.Losses == 0 {
		why = append(why, "nobody lost a hold, so nobody heard the deposed leader and no other")
	}
	for _, v := range rep.Verdicts {
		if v.Vacuous != "" {
			why = append(why, v.Check+": "+v.Vacuous)
		}
	}
	return why
}

// Find returns the verdict of a check, or nil if it was not made.
func (rep *Report) Find(check string) *Verdict {
	for _, v := range rep.Verdicts {
		if v.Check == check {
			return v
		}
	}
	return nil
}

// Least is what several runs together must have seen for their verdicts to mean anything (K12). PlainLost and Stale are
// what faults did, AnyLost and AnyStale also what overruns did. Ends are the releases whose answers were lost in
// particular, and as many conversions, and withdrawals.
type Least struct{ HolderBlows, PlainLost, AnyLost, Stale, AnyStale, WaiterBlows, Turns, Wakes, Ends int }

// Vacuity says what is missing of that, or nothing.
func (f *Figures) Vacuity(l Least) []string {
	var missing []string
	for _, c := range []struct {
		what       string
		has, needs int
	}{
		{"faults that hit a holder", f.HolderBlows, l.HolderBlows},
		{"updates lost by faults without a fence", f.PlainLost.Faults, l.PlainLost},
		{"updates lost without a fence", f.PlainLost.All(), l.AnyLost},
		{"stale requests refused after faults", f.Stale.Faults, l.Stale},
		{"stale requests refused", f.Stale.All(), l.AnyStale},
		{"faults that hit who was next in line", f.WaiterBlows, l.WaiterBlows},
		{"upgrades and downgrades", f.Turns, l.Turns},
		{"waits that a signal ended", f.Wakes, l.Wakes},
		{"releases whose answer was lost", f.Ends[register.Releases], l.Ends},
		{"conversions whose answer was lost", f.Ends[register.Converts], l.Ends},
		{"withdrawals whose answer was lost", f.Ends[register.Withdraws], l.Ends},
	} {
		if c.has < c.needs {
			missing = append(missing, fmt.Sprintf("%d %s, and %d are needed", c.has, c.what, c.needs))
		}
	}
	return missing
}
