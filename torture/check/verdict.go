// Package check judges what a run has recorded. It reads nothing but the folder, so an old run can be judged again.
package check

import (
	"fmt"
	"time"

	"github.com/interlock-go/interlock/torture/register"
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
