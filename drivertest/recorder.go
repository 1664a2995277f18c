package drivertest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
)

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
