package drivertest

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The way in: the Harness, and the two ways to run the suite. suite.go is one run.

// Harness tells the suite how to reach an engine. Every engine needs Open, and nothing else is always needed.
type Harness struct {
	// Open gives another client's access to the same store, as another process would have it. It fails t if it cannot.
	// The suite closes what Open returns. It is called with the subtest's t, so each subtest may get an empty store, as
	// long as all calls with one t reach the same one. A store that is kept is fine too, because names are never used
	// twice.
	Open func(ctx context.Context, t *testing.T) driver.Driver

	// Crash makes the client behind d vanish as kill -9 would: nothing is released, and calls that are under way return
	// soon. On Leases engines the default is to call d no more, which is all that such an engine sees of a crash.
	// Engines of the other sorts need it.
	Crash func(t *testing.T, d driver.Driver)

	// Pause makes the client behind d stand still until resume is called. Sessions engines need it,
	// unless they lack Expiry.
	Pause func(t *testing.T, d driver.Driver) (resume func())

	// Hang makes the engine's server hang until resume is called, as SIGSTOP does: connections stay, further ones may
	// come, and nothing is answered. It concerns all drivers that Open has returned for t. An engine with a server
	// should have it: without it the promise is reported as not checked.
	Hang func(t *testing.T) (resume func())

	// Lease is the short lease used where a lease must run out. If the machine stands still for longer, a behaviour is
	// tried again, so too short costs time and too long costs time. The default is 400 ms.
	Lease time.Duration

	// Patience bounds all that must happen but may take its time. The default is 10 s.
	Patience time.Duration

	// Kinds are the kinds to test. The default is all that the engine's Traits name.
	Kinds []driver.Kind

	// Keeps are parts of the stack traces of goroutines that may outlive a driver because Open shares a connection
	// among drivers, for instance "database/sql.(*DB)". The default is none.
	Keeps []string

	// Setup names what the engine runs on, where one engine is run in several set-ups: it is put behind the
	// engine's name in the results.
	Setup string

	// Unlisted says that this run writes no results.
	Unlisted bool

	_ struct{}
}

// Run checks every promise of the engine behind h, each behaviour as a subtest of t.
func Run(t *testing.T, h Harness) {
	t.Helper()
	s := newSuite(t, h)
	complete := true
	for _, p := range promises() {
		t.Run(string(p.promise), func(t *testing.T) {
			for _, b := range p.behaviours {
				complete = s.runSubtest(t, p, b) && complete
			}
		})
	}
	// With -run a part of the suite was left out: its results would call the rest untested.
	if complete && len(s.report.Behaviours) == s.size() && !h.Unlisted {
		s.report.summarize()
		s.report.write(t)
	}
}

// runSubtest runs b as a subtest and reports whether it did run.
func (s *suite) runSubtest(t *testing.T, p promised, b behaviour) (ran bool) {
	r := Result{Promise: p.promise, Behaviour: b.sentence}
	passed := t.Run(b.sentence, func(t *testing.T) {
		ran = true
		if r.Status, r.Reason = s.applies(b); r.Status != "" {
			t.Skip(r.Reason)
		}
		t.Cleanup(func() { // registered first, so that it comes last
			if t.Failed() {
				t.Log(p.advice())
			}
		})
		s.try(t, t, b)
	})
	if r.Status == "" {
		r.Status = Kept
		if !passed {
			r.Status = Failed
		}
	}
	if ran {
		s.report.Behaviours = append(s.report.Behaviours, r)
	}
	return ran
}

// Examine checks what Run checks, but reports what it found instead of failing t. It is for the tests of tests, and for
// testing/synctest, which allows no subtests. It calls Open, Crash, Pause and Hang with t itself.
func Examine(t *testing.T, h Harness) *Report {
	t.Helper()
	s := newSuite(t, h)
	for _, p := range promises() {
		for _, b := range p.behaviours {
			r := Result{Promise: p.promise, Behaviour: b.sentence}
			if r.Status, r.Reason = s.applies(b); r.Status == "" {
				r.Status, r.Reason = s.record(t, p, b)
			}
			s.report.Behaviours = append(s.report.Behaviours, r)
		}
	}
	s.report.summarize()
	return s.report
}

// record runs b with a recorder in place of t.
func (s *suite) record(t *testing.T, p promised, b behaviour) (Status, string) {
	failures := recordFailures(func(tb tester) { s.try(tb, t, b) })
	if failures != "" {
		return Failed, failures + "\n" + p.advice()
	}
	return Kept, ""
}
