// Package check judges what a run has recorded. It reads nothing but the folder, so an old run can be judged again.
package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// Verdict is what one check found.
type Verdict struct {
	Check  string // "K1", as in the list of checks
	Claim  string // what must hold
	Of     int    // how many cases were judged
	Faults []string
	// Spared is how many more would have been faults, and were not judged because a process or the machine stood still;
	// of K4, because the end of a connection was still news.
	Spared int
	// Excused says why faults are possible here, if they are: then they are counted and do not fail the run.
	Excused string
	// Vacuous says why the check could not have found anything.
	Vacuous string
}

// OK reports whether the claim was kept, as far as it was made.
func (v *Verdict) OK() bool { return len(v.Faults) == 0 || v.Excused != "" }

// String is one line.
func (v *Verdict) String() string {
	switch {
	case v.Vacuous != "":
		return fmt.Sprintf("%-4s INCONCLUSIVE  %s: %s", v.Check, v.Claim, v.Vacuous)
	case v.OK() && len(v.Faults) > 0:
		return fmt.Sprintf("%-4s expected      %s: %d of %d, because %s",
			v.Check, v.Claim, len(v.Faults), v.Of, v.Excused)
	case v.OK():
		return fmt.Sprintf("%-4s kept          %s: 0 of %d against it%s%s",
			v.Check, v.Claim, v.Of, bound(v.Of), v.spared())
	}
	return fmt.Sprintf("%-4s BROKEN        %s: %d of %d%s; first: %s",
		v.Check, v.Claim, len(v.Faults), v.Of, v.spared(), v.Faults[0])
}

// spared says how many were not judged, if some were not.
func (v *Verdict) spared() string {
	if v.Spared == 0 {
		return ""
	}
	return fmt.Sprintf(", %d more not judged", v.Spared)
}

// judged counts a case. One that was late, but while somebody stood still, proves nothing either way.
func (v *Verdict) judged(excused bool) {
	if excused {
		v.Spared++
	} else {
		v.Of++
	}
}

// bound is what 0 of n proves: with 95 % certainty the share is below three nths. Three and fewer prove nothing.
func bound(n int) string {
	if n <= 3 {
		return ""
	}
	return fmt.Sprintf(" (below %.2g %% with 95 %% certainty)", 300/float64(n))
}

func (v *Verdict) fault(format string, args ...any) {
	v.Faults = append(v.Faults, fmt.Sprintf(format, args...))
}

// Figures are what a run was worth.
type Figures struct {
	Grants       int    // acquisitions that succeeded
	Increments   int    // accepted writes of the fenced numbers
	Stale        Causes // requests that the fence refused
	PlainWrites  int    // writes of the numbers without a fence
	PlainLost    Causes // updates of those that were lost
	Blows        int
	HolderBlows  int // that hit a client that held a lock
	WaiterBlows  int // that hit who stood first in a line
	ByFault      map[target.Fault]Hits
	Ends         Ends          // of how many requests to end something the answers were lost in particular
	Doubles      int           // locks that were granted although another, by all that it could know, still had them
	Turns        int           // holds that changed their mode
	Wakes        int           // waits for a condition that ended with a hold
	TakenOver    int           // holds of locks that their client had retained
	GaveWay      int           // holders who were told that another process wants the lock
	Losses       int           // holds that were lost
	FalseLosses  int           // of those, without a fault
	TokensBack   int           // acquisitions whose token was not larger than an earlier one's
	TokenStep    uint64        // the largest step back
	CalmHeld     time.Duration // how long all holds together were held without a fault
	Ran          time.Duration // how long it went on
	LongestWait  time.Duration
	SlowestAfter time.Duration // the longest time from the end of a fault to the next grant
	AfterDeath   Delays        // from a holder's kill -9 to the next grant of its lock; see deaths
	Failovers    Delays        // the longest time without any grant while another server took over
	Outages      Delays        // the same while a server was away
	LossTold     Delays        // from the end of a hold to when its holder was told that it was lost
	FaultTold    Delays        // from the begin of a fault to when those were told that lost their hold to it
}

// Add adds those of another run.
func (f *Figures) Add(o Figures) {
	f.Grants += o.Grants
	f.Increments += o.Increments
	f.Stale.addAll(o.Stale)
	f.PlainWrites += o.PlainWrites
	f.PlainLost.addAll(o.PlainLost)
	f.Blows += o.Blows
	f.HolderBlows += o.HolderBlows
	f.WaiterBlows += o.WaiterBlows
	f.addHits(o.ByFault)
	f.addEnds(o.Ends)
	f.Doubles += o.Doubles
	f.Turns += o.Turns
	f.Wakes += o.Wakes
	f.TakenOver += o.TakenOver
	f.GaveWay += o.GaveWay
	f.Losses += o.Losses
	f.FalseLosses += o.FalseLosses
	f.TokensBack += o.TokensBack
	f.TokenStep = max(f.TokenStep, o.TokenStep)
	f.CalmHeld += o.CalmHeld
	f.Ran += o.Ran
	f.LongestWait = max(f.LongestWait, o.LongestWait)
	f.SlowestAfter = max(f.SlowestAfter, o.SlowestAfter)
	f.AfterDeath = append(f.AfterDeath, o.AfterDeath...)
	f.Failovers = append(f.Failovers, o.Failovers...)
	f.Outages = append(f.Outages, o.Outages...)
	f.LossTold = append(f.LossTold, o.LossTold...)
	f.FaultTold = append(f.FaultTold, o.FaultTold...)
}

// String is one line.
func (f Figures) String() string {
	share := 0.0
	if f.PlainWrites > 0 {
		share = 100 * float64(f.PlainLost.Faults) / float64(f.PlainWrites)
	}
	return fmt.Sprintf("%d grants, %d fenced increments, %d stale requests refused after faults, %d of overruns; "+
		"without the fence %d of %d updates lost by faults (%.2g %%), %d by overruns; "+
		"%d faults, %d at a holder, %d at who was next; "+
		"%d releases, %d conversions and %d withdrawals whose answer was lost; "+
		"%d upgrades and downgrades, %d woken by signals; "+
		"%d retained and taken again, %d gave way; %d holds lost, %d double grants; "+
		"longest wait %v, %v from a fault's end to the next grant; %.2f hours",
		f.Grants, f.Increments, f.Stale.Faults, f.Stale.Overruns, f.PlainLost.Faults, f.PlainWrites, share,
		f.PlainLost.Overruns, f.Blows, f.HolderBlows, f.WaiterBlows, f.Ends[register.Releases],
		f.Ends[register.Converts], f.Ends[register.Withdraws], f.Turns, f.Wakes, f.TakenOver, f.GaveWay, f.Losses,
		f.Doubles, f.LongestWait.Round(time.Millisecond), f.SlowestAfter.Round(time.Millisecond), f.Ran.Hours())
}

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
