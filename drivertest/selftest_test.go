package drivertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestRecorder_FatalEndsTheBehaviourButNotItsCleanups(t *testing.T) {
	var trace []string
	failures := recordFailures(func(tb tester) {
		tb.Cleanup(func() {
			trace = append(trace, "first registered")
			tb.Fatalf("in a cleanup")
		})
		tb.Cleanup(func() {
			if tb.Context().Err() == nil {
				t.Error("the context still runs in a cleanup")
			}
			trace = append(trace, "last registered")
		})
		tb.Errorf("one")
		tb.Fatalf("two")
		trace = append(trace, "after Fatalf")
	})
	if got, want := failures, "one\ntwo\nin a cleanup"; got != want {
		t.Errorf("failures are %q, want %q", got, want)
	}
	if got, want := strings.Join(trace, ", "), "last registered, first registered"; got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
}

func TestRecorder_WithoutFailureIsEmpty(t *testing.T) {
	if failures := recordFailures(func(tb tester) { tb.Logf("fine") }); failures != "" {
		t.Errorf("failures are %q", failures)
	}
}

func TestLeakCheck_FindsAGoroutineThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer close(stop)
		stays := func() { <-stop }
		failures := recordFailures(func(tb tester) {
			checkLeaks(tb, nil)
			go stays()
		})
		if !strings.Contains(failures, "TestLeakCheck_FindsAGoroutineThatStays") {
			t.Errorf("failures are %q, want the goroutine", failures)
		}
	})
}

func TestLeakCheck_LetsEndingAndKeptGoroutinesBe(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	failures := recordFailures(func(tb tester) {
		checkLeaks(tb, []string{"drivertest.keptFor("})
		go keptFor(stop)
		soon := make(chan struct{})
		go func() { <-soon }()
		time.AfterFunc(20*time.Millisecond, func() { close(soon) })
	})
	if failures != "" {
		t.Error(failures)
	}
}

func keptFor(stop chan struct{}) { <-stop }

func TestSentences_AreUniqueWithinTheirPromise(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range promises() {
		if len(p.behaviours) == 0 {
			t.Errorf("%s has no behaviour", p.promise)
		}
		for _, b := range p.behaviours {
			key := string(p.promise) + ": " + b.sentence
			if seen[key] || b.run == nil {
				t.Errorf("%q is there twice, or does nothing", key)
			}
			seen[key] = true
		}
	}
}

func TestApplies_DeclaredLacksAreLeftOutWithTheirReason(t *testing.T) {
	s := &suite{
		traits: driver.Traits{
			Lifetime:    driver.Process,
			Unsupported: []driver.Unsupported{{Ability: driver.Expiry, Reason: "it has no clock"}},
		},
		h: Harness{Kinds: []driver.Kind{driver.KindMutex}},
	}
	for _, row := range []struct {
		b      behaviour
		status Status
		reason string
	}{
		{behaviour{}, "", ""},
		{behaviour{needs: needing(driver.Expiry)}, Lacking, "expiry: it has no clock"},
		{behaviour{needs: needing(driver.Expiry), ends: on(driver.Leases)}, Lacking, "expiry: it has no clock"},
		{behaviour{ends: on(driver.Leases)}, NotApplicable, "holds of this engine end with the process"},
		{behaviour{ends: on(driver.Process)}, "", ""},
		{behaviour{kinds: []driver.Kind{driver.KindRWMutex}}, NotApplicable, "the engine has no locks of kind rw"},
		{behaviour{needs: needing(driver.Order)}, "", ""},
		{behaviour{lacks: driver.Expiry}, "", ""},
		{behaviour{lacks: driver.Order}, NotApplicable, "the engine has the ability: order"},
		{behaviour{wants: requeues}, NotApplicable, "the driver has no Requeue"},
		{behaviour{wants: hangs}, Unchecked, "the Harness has no Hang"},
	} {
		if status, reason := s.applies(row.b); status != row.status || reason != row.reason {
			t.Errorf("%+v: %q, %q, want %q, %q", row.b, status, reason, row.status, row.reason)
		}
	}
}

func TestVerdicts(t *testing.T) {
	r := &Report{Behaviours: []Result{
		{Exclusion, "a", Kept, ""},
		{Exclusion, "b", NotApplicable, "no"},
		{Expiry, "a", Lacking, "expiry: no clock"},
		{Expiry, "b", Lacking, "expiry: no clock"},
		{Order, "a", Kept, ""},
		{Order, "b", Lacking, "order: none"},
		{Crash, "a", Kept, ""},
		{Crash, "b", Lacking, "x"},
		{Crash, "c", Failed, "wrong"},
		{Sharing, "a", NotApplicable, "no rw"},
		{Hanging, "a", Unchecked, "no Hang"},
	}}
	want := map[Promise]Verdict{
		Exclusion: {Exclusion, Kept, ""},
		Expiry:    {Expiry, Lacking, "expiry: no clock"},
		Order:     {Order, Partly, "order: none"},
		Crash:     {Crash, Failed, ""},
		Sharing:   {Sharing, NotApplicable, "no rw"},
		Hanging:   {Hanging, Unchecked, "no Hang"},
	}
	for p, v := range want {
		if got := r.verdict(p); got != v {
			t.Errorf("%s: %+v, want %+v", p, got, v)
		}
	}
	r.summarize()
	if broken := r.Broken(); len(broken) != 1 || broken[0] != Crash {
		t.Errorf("broken: %q, want crash", broken)
	}
}

func TestWrite_PutsTheReportIntoTheNamedFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	t.Setenv("INTERLOCK_RESULTS", dir)
	newReport(driver.Traits{Engine: "my engine", Lifetime: driver.Leases}, []driver.Kind{driver.KindMutex}).write(t)
	raw, err := os.ReadFile(filepath.Join(dir, "my-engine.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Engine != "my engine" || got.Lifetime != "lease" || len(got.Kinds) != 1 {
		t.Errorf("written: %+v", got)
	}
}

// plain hides the optional interfaces of a driver.
type plain struct {
	driver.Driver
	traits driver.Traits
}

func (p plain) Traits() driver.Traits { return p.traits }

func (plain) Acquire(context.Context, *driver.Request) (driver.Grant, error) {
	return driver.Grant{Token: 1, Tokens: 1, Nonce: "n", Lease: time.Minute, Sent: time.Now()}, nil
}

func (plain) Release(context.Context, *driver.Release) error { return nil }
func (plain) Close() error                                   { return nil }

func TestMissingInterface_FailsUnlessItIsDeclared(t *testing.T) {
	for _, row := range []struct {
		run  func(*trial)
		want string
	}{
		{func(tr *trial) { tr.client().renewer() }, "has no Renew"},
		{func(tr *trial) { tr.client().inspector() }, "has no Locks"},
		{func(tr *trial) { _ = tr.client().breaks(tr.mutex(), 1) }, "has no Break"},
	} {
		s := &suite{
			h: Harness{Patience: time.Second, Open: func(context.Context, *testing.T) driver.Driver { return plain{} }},
		}
		failures := recordFailures(func(tb tester) { s.try(tb, t, behaviour{run: row.run}) })
		if !strings.Contains(failures, row.want) {
			t.Errorf("failures are %q, want one with %q", failures, row.want)
		}
	}
}

// leaky is a driver that leaves a goroutine behind when it is closed.
type leaky struct {
	plain
	end chan struct{}
}

func (l leaky) Close() error {
	go func() { <-l.end }()
	return nil
}

func TestEveryBehaviour_FailsIfADriverLeavesAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		s := &suite{h: Harness{Open: func(context.Context, *testing.T) driver.Driver { return leaky{end: end} }}}
		failures := recordFailures(func(tb tester) {
			s.try(tb, t, behaviour{run: func(tr *trial) { tr.client() }})
		})
		if !strings.Contains(failures, "leaky.Close") {
			t.Errorf("failures are %q, want the goroutine", failures)
		}
	})
}

func TestMissingCrash_Fails(t *testing.T) {
	process := driver.Traits{Engine: "plain", Lifetime: driver.Process, Kinds: []driver.Kind{driver.KindMutex}}
	report := Examine(t, Harness{
		Patience: 50 * time.Millisecond,
		Open:     func(context.Context, *testing.T) driver.Driver { return plain{traits: process} },
	})
	for _, b := range report.Behaviours {
		if b.Promise == Crash && strings.Contains(b.Reason, "has no Crash") {
			return
		}
	}
	t.Error("an engine whose holds end with the process passes without Crash")
}

func TestAFailure_SaysWhatWasExpectedWhatWasSeenAndWhereToReadOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		traits := driver.Traits{Engine: "plain", Lifetime: driver.Sessions, Kinds: []driver.Kind{driver.KindMutex}}
		s := &suite{traits: traits, h: Harness{
			Patience: time.Second,
			Open:     func(context.Context, *testing.T) driver.Driver { return plain{traits: traits} },
		}}
		p := promised{Fencing, "tokens grow", "Grant.Token", nil}
		status, failures := s.record(t, p, behaviour{run: func(tr *trial) {
			seen := 0
			tr.until("all is done", func() error {
				seen++
				return fmt.Errorf("%d of 1000 seen", seen)
			})
		}})
		want := "all is done: it must come true within 1s; what was seen last: 202 of 1000 seen\n" +
			"the promise of fencing: tokens grow; the contract is package driver, at Grant.Token"
		if status != Failed || failures != want {
			t.Errorf("%s:\n%s\nwant:\n%s", status, failures, want)
		}
	})
}
