// Package longrun says how large the sweeps of the tests are: random histories, topologies, models, mutants that
// compile. They are small in make test, so that it ends in minutes, and have their full size once in CI, which runs
// make test-beside and make test-long. Packages that judge real time run in the second, with nothing beside them:
// scripts/test.sh has the list.
package longrun

import (
	"os"
	"testing"
)

// Variable is what is set to anything for a long run.
const Variable = "INTERLOCK_LONG"

// On reports whether this is a long run.
func On() bool { return os.Getenv(Variable) != "" }

// Of returns the size of a sweep: usual, or full in a long run.
func Of[T any](usual, full T) T {
	if On() {
		return full
	}
	return usual
}

// Only skips t unless this is a long run.
func Only(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skipf("it is a part of make test-beside and make test-long: set %s=1", Variable)
	}
}
