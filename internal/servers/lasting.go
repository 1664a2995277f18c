package servers

import (
	"slices"
	"sync"
	"testing"
)

// Lasting ends what all tests of a package share when the last of them has ended. A server takes a second to start, so
// tests that do it no harm share one:
//
//	var lasting servers.Lasting
//
//	func TestMain(m *testing.M) { os.Exit(lasting.Run(m)) }
//
//	// sharedRedis returns the address of a server that must be left running.
//	var sharedRedis = servers.Share(&lasting, func(t testing.TB) string { return servers.Redis(t) })
type Lasting struct {
	mu       sync.Mutex // guards cleanups
	cleanups []func()
}

// Run runs the tests, ends what lasts, last first, and returns the exit code.
func (l *Lasting) Run(m *testing.M) int {
	code := m.Run()
	l.end()
	return code
}

func (l *Lasting) end() {
	l.mu.Lock()
	cleanups := l.cleanups
	l.cleanups = nil
	l.mu.Unlock()
	for _, cleanup := range slices.Backward(cleanups) {
		cleanup()
	}
}

func (l *Lasting) add(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
}

// Share returns a function that calls start the first time, and later returns what it returned then. What start sets up
// lasts until all tests have ended. If it fails or skips, so does the test, and the next one tries again.
func Share[T any](l *Lasting, start func(t testing.TB) T) func(t testing.TB) T {
	var mu sync.Mutex // guards what follows; held while a server starts
	var shared T
	var started bool
	return func(t testing.TB) T {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !started {
			shared = start(outlasting{t, l})
			started = true
		}
		return shared
	}
}

// outlasting is the test that starts something, whose cleanups are for when all tests have ended.
type outlasting struct {
	testing.TB
	l *Lasting
}

func (o outlasting) Cleanup(f func()) { o.l.add(f) }

// Failed is about this test, whose end is not that of what it has started.
func (outlasting) Failed() bool { return false }

func (o outlasting) TempDir() string {
	dir, remove, err := newFolder("interlock-shared-")
	if err != nil {
		o.Fatal(err)
	}
	o.l.add(func() { _ = remove() })
	return dir
}
