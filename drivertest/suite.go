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

// One run over one engine: what it is told about itself, and which behaviours apply to it. drivertest.go starts it;
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
