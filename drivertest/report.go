package drivertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// What a run has found, for docs/evidence/engines.md: results, and the verdicts that are derived from them.

// Status is what became of a behaviour or a promise.
type Status string

// The statuses.
const (
	Kept          Status = "kept"           // checked, and it holds
	Partly        Status = "partly"         // a promise: what was checked holds, and a part is declared as lacking
	Lacking       Status = "lacking"        // the engine declares that it cannot, and says why
	NotApplicable Status = "not applicable" // the engine has nothing that this could be about
	Unchecked     Status = "not checked"    // the engine has a server, and the Harness cannot make it hang
	Failed        Status = "failed"         // broken
)

// Report is what a run has found out about one engine.
type Report struct {
	Engine      string        `json:"engine"`      // as in its Traits
	Lifetime    string        `json:"lifetime"`    // what ends the holds of a client that has vanished
	Kinds       []string      `json:"kinds"`       // that were checked
	Unsupported []Unsupported `json:"unsupported"` // what it declares that it cannot do
	Promises    []Verdict     `json:"promises"`    // one for each promise
	Behaviours  []Result      `json:"behaviours"`  // one for each behaviour of each promise
}

// Unsupported is an ability that the engine does not have, and why.
type Unsupported struct {
	Ability string `json:"ability"` // as in package driver
	Reason  string `json:"reason"`  // as the engine gives it
}

// Verdict is the result of a whole promise.
type Verdict struct {
	Promise Promise `json:"promise"`          // which promise
	Status  Status  `json:"status"`           // of its behaviours together: see the constants
	Reason  string  `json:"reason,omitempty"` // why it is not kept, or only in part
}

// Result is the result of one behaviour.
type Result struct {
	Promise   Promise `json:"promise"`          // what it is a part of
	Behaviour string  `json:"behaviour"`        // a sentence
	Status    Status  `json:"status"`           // whether the engine does it
	Reason    string  `json:"reason,omitempty"` // why it is not kept
}

// newReport returns a report without results.
func newReport(tr driver.Traits, kinds []driver.Kind) *Report {
	r := &Report{Engine: tr.Engine, Lifetime: tr.Lifetime.String(), Kinds: []string{}, Unsupported: []Unsupported{}}
	for _, k := range kinds {
		r.Kinds = append(r.Kinds, string(k))
	}
	for _, l := range tr.Unsupported {
		r.Unsupported = append(r.Unsupported, Unsupported{string(l.Ability), l.Reason})
	}
	return r
}

// Broken returns the promises that failed, in the order of the tables.
func (r *Report) Broken() []Promise {
	var broken []Promise
	for _, v := range r.Promises {
		if v.Status == Failed {
			broken = append(broken, v.Promise)
		}
	}
	return broken
}

// summarize derives the verdicts from the results.
func (r *Report) summarize() {
	r.Promises = nil
	for _, p := range promises() {
		r.Promises = append(r.Promises, r.verdict(p.promise))
	}
}

// verdict is one promise's: a failure counts before everything else, and a declared lack makes a kept promise kept in
// part.
func (r *Report) verdict(p Promise) Verdict {
	found := make(map[Status]int)
	var lacking, absent []string
	for _, b := range r.Behaviours {
		if b.Promise != p {
			continue
		}
		found[b.Status]++
		switch {
		case b.Status == Lacking && !slices.Contains(lacking, b.Reason):
			lacking = append(lacking, b.Reason)
		case (b.Status == NotApplicable || b.Status == Unchecked) && !slices.Contains(absent, b.Reason):
			absent = append(absent, b.Reason)
		}
	}
	switch {
	case found[Failed] > 0:
		return Verdict{p, Failed, ""}
	case found[Kept] > 0 && found[Lacking] > 0:
		return Verdict{p, Partly, strings.Join(lacking, "; ")}
	case found[Lacking] > 0:
		return Verdict{p, Lacking, strings.Join(lacking, "; ")}
	case found[Kept] > 0:
		return Verdict{p, Kept, ""}
	}
	status := NotApplicable
	if found[Unchecked] > 0 {
		status = Unchecked
	}
	return Verdict{p, status, strings.Join(absent, "; ")}
}

// write puts the report into the folder that INTERLOCK_RESULTS names, if it names one.
func (r *Report) write(t *testing.T) {
	t.Helper()
	dir := os.Getenv("INTERLOCK_RESULTS")
	if dir == "" {
		return
	}
	out, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		t.Fatalf("drivertest: %v", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("drivertest: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, fileName(r.Engine)), append(out, '\n'), 0o644); err != nil {
		t.Fatalf("drivertest: %v", err)
	}
}

// fileName returns the file for an engine's report, with its name made fit for one.
func fileName(engine string) string {
	return strings.Map(func(c rune) rune {
		if c == '/' || c == '\\' || c == ' ' {
			return '-'
		}
		return c
	}, engine) + ".json"
}
