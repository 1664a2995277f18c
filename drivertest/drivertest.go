package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The way in: the Harness, and the two ways to run the suite.

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

// The list of promises: what each means, where the contract says so, and its behaviours. The suite decides which of
// them are run on an engine.

// Promise is one of the things that an engine keeps.
type Promise string

// The promises, each in a file of its own. docs/writing-an-engine.md says in one clause what each means.
const (
	Exclusion    Promise = "exclusion"    // a lock has one holder
	Isolation    Promise = "isolation"    // locks do not touch each other
	Atomicity    Promise = "atomicity"    // an operation happens wholly, or not at all, and only to its own hold
	Expiry       Promise = "expiry"       // a hold that is not renewed ends, not early, and for good
	Reentry      Promise = "re-entry"     // a named owner gets in again, nobody else does
	Renewal      Promise = "renewal"      // a hold lasts for as long as its client keeps it
	Fencing      Promise = "fencing"      // tokens grow, nonces are unique
	Order        Promise = "order"        // waiters are told, served, and in turn
	Cancellation Promise = "cancellation" // a wait can be given up, and leaves nothing
	Crash        Promise = "crash"        // a dead client keeps nobody out for ever
	Inspection   Promise = "inspection"   // operators see who holds and who waits
	Idempotence  Promise = "idempotence"  // a repeated request takes and frees once
	Breaking     Promise = "breaking"     // an operator can end a hold
	Sharing      Promise = "sharing"      // readers, writers and permits share one fair queue
	Requeueing   Promise = "requeueing"   // a hold is given back and asked for again in one step
	Resuming     Promise = "resuming"     // a wait can be left and taken up again
	Bundling     Promise = "bundling"     // several locks are taken in one step, all or none
	Conversion   Promise = "conversion"   // a holder takes another mode without giving up what it has
	Electing     Promise = "electing"     // a leader has a value that everybody can see
	Latching     Promise = "latching"     // a latch counts each once, and comes to zero once a round
	Conditions   Promise = "conditions"   // who gives a lock up for a signal misses none, and each wakes one
	Hanging      Promise = "hanging"      // a server that hangs keeps nobody longer than the context
	Delaying     Promise = "lock delay"   // a lost lock stays closed for a while
	Recalling    Promise = "recall"       // a holder is told that another wants the lock; a retained lock is given back
	Adopting     Promise = "adopting"     // a hold goes on to another client, which alone has it then
)

// promised is a promise and the behaviours that it consists of.
type promised struct {
	promise    Promise
	means      string // one clause
	contract   string // where package driver states it
	behaviours []behaviour
}

// promises returns all of them, in the order of the tables. docs/writing-an-engine.md has the same list, and a test
// compares.
func promises() []promised {
	return []promised{
		{Exclusion, "a lock has one holder", "Driver.Acquire", exclusion()},
		{Isolation, "locks do not touch each other", "Key", isolation()},
		{
			Atomicity, "an operation happens wholly, or not at all, and only to its own hold", "Driver.Release",
			atomicity(),
		},
		{
			Expiry, "a hold that is not renewed ends, not early, and for good", "Grant.Sent, Grant.Lease, Lifetime",
			expiry(),
		},
		{Reentry, "a named owner gets in again, nobody else does", "Request.Named", reentry()},
		{Renewal, "a hold lasts for as long as its client keeps it", "Renewer, Session", renewal()},
		{Fencing, "tokens grow, nonces are unique", "Grant.Token, Grant.Nonce", fencing()},
		{Order, "waiters are told, served, and in turn", "Request.Waiting, Request.Try", order()},
		{Cancellation, "a wait can be given up, and leaves nothing", "Driver, Release.Undo", cancellation()},
		{Crash, "a dead client keeps nobody out for ever", "Lifetime", crash()},
		{Inspection, "operators see who holds and who waits", "Inspector, Looker, HeldError", inspection()},
		{Idempotence, "a repeated request takes and frees once", "Driver.Acquire, Driver.Release", idempotence()},
		{Breaking, "an operator can end a hold", "Breaker, Request.Lost", breaking()},
		{Sharing, "readers, writers and permits share one fair queue", "Mode, Request.Limit", sharing()},
		{Requeueing, "a hold is given back and asked for again in one step", "Requeuer", requeueing()},
		{Resuming, "a wait can be left and taken up again", "Traits.Resumes", resuming()},
		{Bundling, "several locks are taken in one step, all or none", "MultiAcquirer", bundling()},
		{Conversion, "a holder takes another mode without giving up what it has", "Converter", conversion()},
		{Delaying, "a lost lock stays closed for a while", "Request.LockDelay", delaying()},
		{
			Recalling,
			"a holder is told that another wants the lock, and one that keeps a lock without an owner gives way",
			"Request.Wanted, Request.Retains, Renewal.Retained", recalling(),
		},
		{Adopting, "a hold goes on to another client, which alone has it then", "Adopter", adopting()},
		{Electing, "a leader has a value that everybody can see", "KindElection, Looker, Watcher", electing()},
		{Latching, "a latch counts each once, and comes to zero once a round", "Latcher, Watcher", latching()},
		{Conditions, "who gives a lock up for a signal misses none, and each wakes one", "Conder", conditions()},
		{Hanging, "a server that hangs keeps nobody longer than the context", "Driver", hanging()},
	}
}

// advice tells the author of an engine that breaks p what was promised and where to read on.
func (p promised) advice() string {
	return "the promise of " + string(p.promise) + ": " + p.means + "; the contract is package driver, at " + p.contract
}

// One run over one engine: what it is told about itself, and which behaviours apply to it.
// trial.go is one behaviour at work.

// behaviour is one thing that a promise means: a sentence, and a function that fails if the engine does not behave so.
type behaviour struct {
	sentence string
	run      func(tr *trial)

	// A behaviour is skipped where it means nothing, and where the engine has declared that it lacks what is needed.
	// Either way the report says why.
	ends  []driver.Lifetime // the engines that it is about; all if empty
	kinds []driver.Kind     // kinds it needs
	needs []driver.Ability  // abilities it needs
	lacks driver.Ability    // it is about engines that lack this ability
	about driver.Ability    // it is about nothing but this ability: an engine that lacks it is shown with the reason
	wants offer             // what the driver or the harness must offer
}

// offer is something that an engine may have or not, without giving a reason. Its text says that it is missing.
type offer string

const (
	requeues offer = "the driver has no Requeue"
	resumes  offer = "the driver has no Traits.Resumes"
	bundles  offer = "the driver has no AcquireAll"
	converts offer = "the driver has no Convert"
	hangs    offer = "the Harness has no Hang"
	looks    offer = "the driver has no Look"
	watches  offer = "the driver has no Watch"
	latches  offer = "the driver has no latches"
	conds    offer = "the driver has no conditions"

	watchesLatches offer = "the driver has no Watch of latches"
)

// on limits a behaviour to engines whose holds end in one of the given ways.
func on(ends ...driver.Lifetime) []driver.Lifetime { return ends }

// needing names the abilities without which a behaviour cannot be asked for.
func needing(a ...driver.Ability) []driver.Ability { return a }

// suite is one run over one engine. It is constant once made, except for the report.
type suite struct {
	h      Harness
	traits driver.Traits
	offers []offer
	report *Report
}

// newSuite fills in the defaults of h and asks the engine what it is. It ends t if the engine does not even take and
// release a free mutex, or describes itself wrongly.
func newSuite(t *testing.T, h Harness) *suite {
	t.Helper()
	if h.Open == nil {
		t.Fatal("drivertest: the Harness has no Open")
	}
	if h.Lease == 0 {
		h.Lease = 400 * time.Millisecond
	}
	if h.Patience == 0 {
		h.Patience = 10 * time.Second
	}
	s := &suite{h: h}
	s.warmUp(t)
	s.checkTraits(t)
	if h.Kinds == nil {
		s.h.Kinds = s.traits.Kinds
	}
	s.report = newReport(s.traits, s.h.Kinds)
	if s.h.Setup != "" {
		s.report.Engine += " (" + s.h.Setup + ")"
	}
	return s
}

// warmUp uses the engine once before goroutines are counted: what the harness shares among drivers starts here.
func (s *suite) warmUp(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), s.h.Patience)
	defer cancel()
	d := s.h.Open(ctx, t)
	s.traits, s.offers = d.Traits(), offersOf(ctx, d, s.h)
	key := driver.Key{Kind: driver.KindMutex, Name: freshName()}
	r := &driver.Request{Key: key, ID: freshName(), Weight: 1, Tokens: 1, Lease: s.h.Lease}
	if _, err := d.Acquire(ctx, r); err != nil {
		t.Fatalf("drivertest: the first Acquire of a free mutex: %v", err)
	}
	if err := d.Release(ctx, &driver.Release{Key: key, ID: r.ID}); err != nil {
		t.Fatalf("drivertest: the first Release: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatalf("drivertest: Close: %v", err)
	}
}

// offersOf returns what d and its harness offer.
func offersOf(ctx context.Context, d driver.Driver, h Harness) (offers []offer) {
	if _, has := d.(driver.Requeuer); has {
		offers = append(offers, requeues)
	}
	if acquiresAll(ctx, d) {
		offers = append(offers, bundles)
	}
	if d.Traits().Resumes {
		offers = append(offers, resumes)
	}
	if _, has := d.(driver.Converter); has {
		offers = append(offers, converts)
	}
	if _, has := d.(driver.Looker); has {
		offers = append(offers, looks)
	}
	_, watched := d.(driver.Watcher)
	if watched {
		offers = append(offers, watches)
	}
	if d.Traits().Supports(driver.KindLatch) { // a wrapper has the methods in any case, so the traits count
		offers = append(offers, latches)
		if watched {
			offers = append(offers, watchesLatches)
		}
	}
	if d.Traits().Supports(driver.KindCond) {
		offers = append(offers, conds)
	}
	if h.Hang != nil {
		offers = append(offers, hangs)
	}
	return offers
}

// acquiresAll reports whether d can take several locks in one step. A wrapper has the method in any case, so it is
// tried. The names share a {tag}, because a Cluster needs that.
func acquiresAll(ctx context.Context, d driver.Driver) bool {
	all, has := d.(driver.MultiAcquirer)
	if !has {
		return false
	}
	keys := []driver.Key{{Kind: driver.KindMutex, Name: "{" + freshName() + "}:a"}}
	keys = append(keys, driver.Key{Kind: driver.KindMutex, Name: keys[0].Name + "b"})
	rs := make([]*driver.Request, len(keys))
	for i, key := range keys {
		rs[i] = &driver.Request{Key: key, ID: freshName(), Weight: 1, Tokens: 1, Lease: time.Second, Try: true}
	}
	if _, err := all.AcquireAll(ctx, rs); errors.Is(err, driver.ErrUnsupported) {
		return false
	}
	for _, r := range rs {
		// If this fails, the lease ends what was taken.
		_ = d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: time.Second})
	}
	return true
}

// checkTraits refuses a driver that does not describe itself: then nothing could be left out with a reason.
func (s *suite) checkTraits(t *testing.T) {
	t.Helper()
	known := []driver.Ability{
		driver.NamedOwners, driver.Order, driver.Breaking, driver.Holders, driver.Waiters, driver.Expiry,
		driver.Conversion, driver.LockDelays, driver.Recalls, driver.Resizing,
		driver.Adoption,
	}
	for _, k := range []driver.Kind{
		driver.KindRWMutex, driver.KindSemaphore, driver.KindLatch, driver.KindCond, driver.KindElection,
	} {
		if !s.traits.Supports(k) {
			known = append(known, driver.Ability(k))
		}
	}
	tr := s.traits
	if tr.Engine == "" {
		t.Error("Traits: Engine is empty")
	}
	if tr.Lifetime < driver.Leases || tr.Lifetime > driver.Process {
		t.Errorf("Traits: Lifetime is %v", tr.Lifetime)
	}
	if !tr.Supports(driver.KindMutex) {
		t.Error("Traits: Kinds does not have the mutex, which every engine offers")
	}
	if _, told := tr.Lacking(driver.Conversion); tr.Supports(driver.KindRWMutex) && !told &&
		!slices.Contains(s.offers, converts) {
		t.Error(
			"Traits: Kinds has rw, but the driver has no Convert, and Unsupported gives no reason for the lack of " +
				"conversion")
	}
	for _, l := range tr.Unsupported {
		if !slices.Contains(known, l.Ability) {
			t.Errorf("Traits: Unsupported names %q, which is not an ability", l.Ability)
		}
		if strings.TrimSpace(l.Reason) == "" {
			t.Errorf("Traits: Unsupported gives no reason for %q", l.Ability)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

// size returns the number of behaviours.
func (s *suite) size() int {
	n := 0
	for _, p := range promises() {
		n += len(p.behaviours)
	}
	return n
}

// applies returns an empty status if b runs, and otherwise why it does not.
func (s *suite) applies(b behaviour) (Status, string) {
	if reason, lacks := s.traits.Lacking(b.about); lacks && b.about != "" {
		return Lacking, fmt.Sprintf("%s: %s", b.about, reason)
	}
	for _, k := range b.kinds {
		if !slices.Contains(s.h.Kinds, k) {
			return NotApplicable, fmt.Sprintf("the engine has no locks of kind %s", k)
		}
	}
	if reason, lacks := s.traits.Lacking(driver.Conversion); lacks && b.wants == converts {
		return Lacking, fmt.Sprintf("%s: %s", driver.Conversion, reason)
	}
	if b.wants != "" && !slices.Contains(s.offers, b.wants) {
		if b.wants == hangs && !s.traits.Local {
			return Unchecked, string(b.wants)
		}
		return NotApplicable, string(b.wants)
	}
	// What the engine declares comes before how its holds end, so that its reason is shown wherever there is one.
	for _, a := range b.needs {
		if reason, lacks := s.traits.Lacking(a); lacks {
			return Lacking, fmt.Sprintf("%s: %s", a, reason)
		}
	}
	if len(b.ends) > 0 && !slices.Contains(b.ends, s.traits.Lifetime) {
		return NotApplicable, fmt.Sprintf("holds of this engine end with the %v", s.traits.Lifetime)
	}
	if b.lacks != "" {
		if _, lacks := s.traits.Lacking(b.lacks); !lacks {
			return NotApplicable, fmt.Sprintf("the engine has the ability: %s", b.lacks)
		}
	}
	return "", ""
}

// try runs b on fresh clients and a fresh lock.
func (s *suite) try(tb tester, t *testing.T, b behaviour) {
	checkLeaks(tb, s.h.Keeps) // registered first, so that it looks last, when everything is closed
	tr := &trial{tester: tb, suite: s, t: t, name: freshName()}
	b.run(tr)
}
