package handoff

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var wide = flag.Bool("wide", false, "search the sound protocol with wide bounds, for minutes")

// limit bounds every search, so that a change which makes a model explode fails instead of eating the machine.
const limit = 9_000_000

// requireSound fails if a model has a fault, was not searched completely, or is so small that this says nothing. It
// takes the model with the usual bounds, with those for the race detector and for -short, and with wide ones.
// "make simulate" has the usual ones in CI.
func requireSound[S comparable](t *testing.T, least int, usual, raced, widest Model[S]) {
	t.Helper()
	t.Parallel()
	m := usual
	switch {
	case *wide:
		m = widest
	case underRace || testing.Short():
		m, least = raced, least/20
	}
	r := Search(m, limit)
	if r.Fault != "" {
		t.Fatalf("the sound protocol has a fault: %v", r)
	}
	if !r.Complete {
		t.Fatalf("the search was given up: %v", r)
	}
	if r.States < least {
		t.Fatalf("the model is next to empty, want at least %d states: %v", least, r)
	}
	t.Log(r)
}

// requireFault fails unless want is what m is first found to do, and prints the story of it.
func requireFault[S comparable](t *testing.T, m Model[S], want Fault) {
	t.Helper()
	r := Search(m, limit)
	if r.Fault != want {
		t.Fatalf("without the rule the fault is %q, want %q: %v", r.Fault, want, r)
	}
	t.Log(r)
}

func TestEveryRule_IsOnInTheSoundProtocolAndIsSwitchedOffByATest(t *testing.T) {
	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	sound := reflect.ValueOf(Sound())
	for i := range sound.NumField() {
		name := sound.Type().Field(i).Name
		if !sound.Field(i).Bool() {
			t.Errorf("Sound leaves %s off", name)
		}
		if !strings.Contains(tests.String(), "r."+name+" = false") {
			t.Errorf("no test switches %s off, so nobody knows that the rule is needed", name)
		}
	}
}
