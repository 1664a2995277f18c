// Package switches shows that the rules which Go code carries are necessary: it takes out one after the other, and the
// check of the rule must notice. It is for tests.
//
// A rule is taken out by a switch, which is put into a copy of the source. The copy is given to the compiler instead of
// the file, and the test runs itself again.
package switches

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/overlay"
)

// Lever is where a switch goes: the name of a file, a text, which is at one place of it, and what that
// becomes. It may call off(name), which tells whether the rule of that name is out, and unless(name, on, out),
// which is out then, and else on.
type Lever [3]string

// The files that the levers need, and the one that gives the test its hand on them: it sets the variable setOff of the
// package's tests, which is nil otherwise.
const (
	switchboard = `package PACKAGE

import "sync/atomic"

var offNow atomic.Value

func off(name string) bool { now, _ := offNow.Load().(string); return now == name }

func unless[T any](name string, on, out T) T {
	if off(name) {
		return out
	}
	return on
}
`
	handle = `package PACKAGE

func init() { setOff = func(name string) { offNow.Store(name) } }
`
)

// Run runs a test of the package in the working directory again, with the switches put in, and fails t if that fails. A
// check that has noticed what is missing logs "noticed: " and what.
func Run(t *testing.T, pkg, test string, levers []Lever) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the package once more")
	}
	sources := map[string]string{
		"switchboard.go":      strings.Replace(switchboard, "PACKAGE", pkg, 1),
		"switchboard_test.go": strings.Replace(handle, "PACKAGE", pkg, 1),
	}
	maps.Copy(sources, withSwitches(t, levers))
	list, err := overlay.Write(t.TempDir(), absolute(t, sources))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{
		"test", "-overlay", list, "-v", "-count=1", "-vet=off", "-ldflags=-w", "-run", "^" + test + "$", ".",
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "noticed: ") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// InPlace fails t if a lever has lost its place. It compiles nothing, so that it need not wait for the next long run.
func InPlace(t *testing.T, levers []Lever) {
	t.Helper()
	withSwitches(t, levers)
}

// withSwitches returns the files that the levers name, with their switches.
func withSwitches(t *testing.T, levers []Lever) map[string]string {
	t.Helper()
	sources := make(map[string]string)
	for _, l := range levers {
		file, was, is := l[0], l[1], l[2]
		if sources[file] == "" {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[file] = string(text)
		}
		if n := strings.Count(sources[file], was); n != 1 {
			t.Fatalf("%q is at %d places of %s", was, n, file)
		}
		sources[file] = strings.Replace(sources[file], was, is, 1)
	}
	return sources
}

// absolute returns the sources by their whole paths.
func absolute(t *testing.T, sources map[string]string) map[string]string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string, len(sources))
	for name, text := range sources {
		all[filepath.Join(here, name)] = text
	}
	return all
}
