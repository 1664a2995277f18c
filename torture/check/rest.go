package check

import (
	"fmt"

	"github.com/interlock-go/interlock/torture/history"
)

// checkCalls is K8: a call returns when its context ends.
func (r *record) checkCalls(f *Figures) *Verdict {
	v := &Verdict{Check: "K8", Claim: "a Lock returns within 50 ms of the end of its context"}
	for _, e := range r.events {
		if e.Op != history.Acquire || e.Phase == history.Call {
			continue
		}
		f.LongestWait = max(f.LongestWait, e.Took)
		if e.Late == 0 {
			continue
		}
		v.Of++
		if e.Late > lateness && !r.stood(e.Proc, e.At.Add(-e.Late), e.At) {
			v.fault("process %d, goroutine %d: %v late", e.Proc, e.Gor, e.Late)
		}
	}
	return v
}

// checkResidue is K9: when everybody has left, no lock is held.
func (r *record) checkResidue() *Verdict {
	v := &Verdict{Check: "K9", Claim: "when all have left no lock is held or waited for", Of: r.about.Names}
	for _, s := range r.about.Residue {
		v.fault("%s", s)
	}
	return v
}

// checkLeaks is K10: a process that ends in order has nothing left that it did not have at first.
func (r *record) checkLeaks() *Verdict {
	v := &Verdict{Check: "K10", Claim: "a process that ends leaves no goroutine and no descriptor"}
	for _, p := range r.about.Problems {
		v.fault("%s", p)
	}
	for _, e := range r.events {
		if e.Op != history.End {
			continue
		}
		v.Of++
		if e.Goroutines > 0 || e.Files > 0 {
			v.fault("process %d: %d goroutines, %d descriptors", e.Proc, e.Goroutines, e.Files)
		}
	}
	return v
}

// Report is what all checks found in one run, or in several.
type Report struct {
	Verdicts []*Verdict
	Figures  Figures
}

// Dir judges the run that has left the folder.
func Dir(dir string) (*Report, error) {
	r, err := load(dir)
	if err != nil {
		return nil, err
	}
	rep := &Report{}
	f := &rep.Figures
	f.Grants = len(r.holds)
	for _, b := range r.blows {
		f.Blows++
		if b.Holder {
			f.HolderBlows++
		}
	}
	r.takeTimes(f)
	for _, v := range []*Verdict{
		r.checkUpdates(f), r.checkFence(), r.checkTokens(), r.checkExclusion(), r.checkBelief(), r.checkLosses(f),
		r.checkProgress(f), r.checkCalls(f), r.checkResidue(), r.checkLeaks(), r.checkShares(),
	} {
		if v != nil {
			rep.Verdicts = append(rep.Verdicts, v)
		}
	}
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

// Find returns the verdict of a check, or nil if it was not made.
func (rep *Report) Find(check string) *Verdict {
	for _, v := range rep.Verdicts {
		if v.Check == check {
			return v
		}
	}
	return nil
}

// Least is what several runs together must have seen for their verdicts to mean anything (K12).
type Least struct{ HolderBlows, PlainLost, Stale int }

// Vacuity says what is missing of that, or nothing.
func (f *Figures) Vacuity(l Least) []string {
	var missing []string
	for _, c := range []struct {
		what       string
		has, needs int
	}{
		{"faults that hit a holder", f.HolderBlows, l.HolderBlows},
		{"updates lost without a fence", f.PlainLost, l.PlainLost},
		{"stale requests refused", f.Stale, l.Stale},
	} {
		if c.has < c.needs {
			missing = append(missing, fmt.Sprintf("%d %s, and %d are needed", c.has, c.what, c.needs))
		}
	}
	return missing
}
