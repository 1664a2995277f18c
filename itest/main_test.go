package itest

import (
	"os"
	"slices"
	"testing"
)

// A server takes a second to start, so tests that do it no harm share one.

func TestMain(m *testing.M) {
	code := m.Run()
	for _, cleanup := range slices.Backward(cleanups) {
		cleanup()
	}
	os.Exit(code)
}

var cleanups []func() // of what lasts for all tests

// lasting is a test whose cleanups are for when all tests have ended.
type lasting struct{ testing.TB }

func (lasting) Cleanup(f func()) { cleanups = append(cleanups, f) }

func (lasting) Failed() bool { return false }

func (l lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "itest")
	if err != nil {
		l.Fatal(err)
	}
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	return dir
}
