package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// One behaviour at work: its lock, its clients, its clock and its verdicts. client.go has what it does with
// them.

// longLease is for holds that must not run out during a behaviour, however slow the machine is.
const longLease = 5 * time.Minute

// settle is how long the suite watches that something does not happen, and how long it gives an engine that cannot tell
// when a wait has reached its queue. Too short a time can hide a fault, but never invent one.
const settle = 50 * time.Millisecond

// trial is one behaviour at work: its lock, its clients, and how to say what went wrong.
type trial struct {
	tester
	*suite
	t    *testing.T // for the harness, also when a recorder stands in its place
	name string     // of the lock, new for each behaviour
	made int        // how many clients were made, for their names
}

// freshName returns a name that no lock, hold or client had before.
func freshName() string { return "drivertest-" + rand.Text()[:16] }

// mutex returns the behaviour's lock.
func (tr *trial) mutex() driver.Key { return driver.Key{Kind: driver.KindMutex, Name: tr.name} }

// key returns the lock of the behaviour's name and another kind.
func (tr *trial) key(k driver.Kind) driver.Key { return driver.Key{Kind: k, Name: tr.name} }

// another returns a further mutex of this behaviour.
func (tr *trial) another(suffix string) driver.Key {
	return driver.Key{Kind: driver.KindMutex, Name: tr.name + suffix}
}

// bound returns the context of a call that must succeed in time.
func (tr *trial) bound() (context.Context, context.CancelFunc) {
	return context.WithTimeout(tr.Context(), tr.h.Patience)
}

// client opens another client of the store. It is closed at the end of the behaviour.
func (tr *trial) client() *client {
	tr.Helper()
	tr.made++
	return tr.over(tr.open(), fmt.Sprintf("client %d", tr.made))
}

// open opens a driver, to be closed at the end of the behaviour.
func (tr *trial) open() driver.Driver {
	tr.Helper()
	return tr.openThrough(func(d driver.Driver) driver.Driver { return d })
}

// openThrough opens a driver and wraps it. At the end of the behaviour the wrapper is closed, which must close the
// driver.
func (tr *trial) openThrough(wrap func(driver.Driver) driver.Driver) driver.Driver {
	tr.Helper()
	// The harness may tie what it opens to the context, so the context lasts for the whole behaviour.
	ctx, cancel := context.WithCancel(context.Background())
	d := wrap(tr.h.Open(ctx, tr.t))
	tr.Cleanup(func() {
		defer cancel()
		if err := d.Close(); err != nil {
			tr.Errorf("Close: %v", err)
		}
	})
	return d
}

// over returns a client whose calls go through d.
func (tr *trial) over(d driver.Driver, name string) *client { return &client{tr: tr, d: d, name: name} }

// random returns a source whose seed is in the log.
func (tr *trial) random() *mathrand.Rand {
	seed := mathrand.Uint64()
	tr.Logf("seed %d", seed)
	return mathrand.New(mathrand.NewPCG(seed, 0))
}

// pass lets d go by: a lease must run out, or something must not happen meanwhile. In a testing/synctest bubble it
// costs no time.
func (tr *trial) pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-tr.Context().Done():
	}
}

// until repeats missing until there is no error, and fails if that takes longer than the harness's patience. It polls:
// an engine need not tell when something has come true.
func (tr *trial) until(what string, missing func() error) {
	tr.Helper()
	tr.untilWithin(tr.h.Patience, what, missing)
}

// untilWithin is until with another time limit.
func (tr *trial) untilWithin(d time.Duration, what string, missing func() error) {
	tr.Helper()
	for end := time.Now().Add(d); ; tr.pass(5 * time.Millisecond) {
		err := missing()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			tr.Fatalf("%s: it must come true within %v; what was seen last: %v", what, d, err)
		}
	}
}

// mustMatch fails unless err matches target.
func (tr *trial) mustMatch(err, target error, what string) {
	tr.Helper()
	if err == nil {
		tr.Fatalf("%s: it must fail with an error that matches %q, and succeeded", what, target)
	}
	if !errors.Is(err, target) {
		tr.Fatalf("%s: the error is %q, want one that matches %q", what, err, target)
	}
}

// must fails if err is not nil.
func (tr *trial) must(err error, what string) {
	tr.Helper()
	if err != nil {
		tr.Fatalf("%s: it must succeed, but says: %v", what, err)
	}
}

// text returns err in words, also if it is nil.
func text(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// crash makes c vanish. On Leases engines its waits end without being undone, which is all that the engine can see of a
// crash.
func (tr *trial) crash(c *client, waits ...*wait) {
	tr.Helper()
	switch {
	case tr.h.Crash != nil:
		tr.h.Crash(tr.t, c.d)
	case tr.traits.Lifetime != driver.Leases:
		tr.Fatalf("the Harness has no Crash, and holds of this engine end with the %v: a dead client cannot be tried",
			tr.traits.Lifetime)
	}
	for _, w := range waits {
		w.stop()
	}
}

// afterlife bounds how long the remains of a dead client may keep others out. That is its lease or session, and some
// more for engines that first grant to a dead waiter and have to wait that out too.
func (tr *trial) afterlife() time.Duration {
	return tr.h.Patience + 4*max(tr.h.Lease, tr.traits.Timeout)
}

// A stand-in for *testing.T, so that a driver which must fail can be examined.

// tester is the part of *testing.T that the behaviours use.
type tester interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any) // must be called in the goroutine that runs the behaviour
	Failed() bool
	Cleanup(f func())
	Context() context.Context // ends before the cleanups run
}

// recorder is a tester that keeps its failures to itself.
type recorder struct {
	ctx      context.Context //nolint:containedctx // what Context returns, as of *testing.T
	mu       sync.Mutex      // guards what follows; no cleanup is called under it
	failures []string
	cleanups []func()
}

// recordFailures runs f with a recorder and returns its failures, each on a line, or an empty string.
func recordFailures(f func(tester)) string {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{ctx: ctx}
	// Fatalf ends the goroutine that calls it, as testing does, so f has one of its own. A cleanup may call Fatalf too.
	inGoroutine(func() { f(r) })
	cancel()
	for cleanup := r.pop(); cleanup != nil; cleanup = r.pop() {
		inGoroutine(cleanup)
	}
	return strings.Join(r.failures, "\n")
}

// inGoroutine runs f in a goroutine and waits for it.
func inGoroutine(f func()) {
	done := make(chan struct{})
	go func() { // ends with f, and is waited for
		defer close(done)
		f()
	}()
	<-done
}

// pop removes and returns the cleanup that was registered last, or nil.
func (r *recorder) pop() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.cleanups) == 0 {
		return nil
	}
	last := r.cleanups[len(r.cleanups)-1]
	r.cleanups = r.cleanups[:len(r.cleanups)-1]
	return last
}

func (r *recorder) Helper()                  {}
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Context() context.Context { return r.ctx }

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Goroutines that a driver leaves behind count as failures, so they are compared before and after each behaviour.

// leakPatience is how long goroutines may take to end after everything was closed, on a machine that may stand still
// meanwhile.
const leakPatience = 15 * time.Second

// checkLeaks fails tb at its end if goroutines run that did not run at the call. Goroutines whose stack contains one of
// keeps do not count.
func checkLeaks(tb tester, keeps []string) {
	before := goroutines()
	tb.Cleanup(func() {
		tb.Helper()
		var left []string
		// A goroutine that was told to end needs a moment, and nothing says when it is gone.
		for end := time.Now().Add(leakPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if left = started(before, keeps); len(left) == 0 {
				return
			}
		}
		tb.Errorf("%d goroutines are left after everything was closed:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// started returns the stacks of the goroutines that are not in before.
func started(before map[string]string, keeps []string) []string {
	var left []string
	for id, stack := range goroutines() {
		if _, old := before[id]; !old && !kept(stack, keeps) {
			left = append(left, stack)
		}
	}
	return left
}

// kept reports whether stack contains one of keeps.
func kept(stack string, keeps []string) bool {
	for _, k := range keeps {
		if strings.Contains(stack, k) {
			return true
		}
	}
	return false
}

// goroutines returns the stacks of all goroutines but this one and those of package testing, by "goroutine N".
func goroutines() map[string]string {
	buf := make([]byte, 64<<10)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	stacks := strings.Split(strings.TrimSpace(string(buf[:n])), "\n\n")
	all := make(map[string]string, len(stacks))
	for _, stack := range stacks[1:] { // the first is this one
		id, _, _ := strings.Cut(stack, " [")
		if !kept(stack,
			[]string{"testing.(*T).Run(", "testing.runTests(", "os/signal.loop(", "testing.(*M).startAlarm"}) {
			all[id] = stack
		}
	}
	return all
}
