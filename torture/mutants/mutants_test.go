package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	// What is edited: go test would else take its result from the cache when only that has changed.
	_ "github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/etcdlock"
	_ "github.com/interlock-go/interlock/fence"
	_ "github.com/interlock-go/interlock/internal/fencemodel"
	_ "github.com/interlock-go/interlock/internal/handoff"
	"github.com/interlock-go/interlock/internal/longrun"
	_ "github.com/interlock-go/interlock/memlock"
	_ "github.com/interlock-go/interlock/redislock"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	_ "github.com/interlock-go/interlock/torture/register"
	_ "github.com/interlock-go/interlock/zklock"
)

// Each mutant is noticed, on one seed, by the checks that are quick; interlock torture mutants
// makes them all, with five.
func TestMutants_AreNoticed(t *testing.T) {
	longrun.Only(t) // it builds the programs of nine packages
	h := &Hunt{Root: root(t), Seeds: 1, Quick: true, Log: t.Output()}
	found, err := h.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, f := range found {
		if f.Green[0].Skipped != "" {
			t.Logf("%s: SKIPPED: %s", f.Mutant.ID, f.Green[0].Skipped)
		}
		ids = append(ids, f.Mutant.ID)
	}
	alone := []string{"M25", "M26", "M27", "M28"} // are for runs with real processes
	for _, m := range All() {
		if !slices.Contains(ids, m.ID) && !slices.Contains(alone, m.ID) {
			t.Errorf("no quick check looks for %s", m.ID)
		}
	}
	if err := Err(found); err != nil {
		t.Error(err)
	}
}

// A hunt would be worth nothing if it found what is not there, or took any failure for the one that it is to find.
func TestHunt_OfWhatIsNoMutant_FailsAndSaysWhy(t *testing.T) {
	longrun.Only(t) // it builds a program
	model := modelOfTheFence("TestSound_WithGrowingTokens_HasNoFault", "a stale effect", "stale effect: ")
	otherwise, never := model, model
	otherwise.Says = "says nothing like that"
	never.Test = "^TestThatIsNotThere$"
	h := &Hunt{Root: root(t), Seeds: 1, Log: t.Output()}
	m := Mutant{ID: "M11", Checks: []Check{model, withSwitch("no mutant", model), otherwise, never}}
	found, err := h.hunt(t.Context(), []Mutant{m})
	if err != nil {
		t.Fatal(err)
	}
	for i, says := range []string{"", "does not notice it", "does not say", "without the mutant"} {
		err := Err(found[i : i+1])
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}

func TestEdited_TextsThatHaveGone_AreToldWithTheirFile(t *testing.T) {
	_, err := edited(root(t), []Mutant{{ID: "M0", Edits: []Edit{{File: "client.go", Old: "no such text"}}}})
	if err == nil || !strings.Contains(err.Error(), `M0: "no such text" is at 0 places of client.go`) {
		t.Errorf("got %v", err)
	}
}

func TestRoot_OutsideOfAClone_SaysWhatIsNeeded(t *testing.T) {
	if _, err := Root(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not in a clone of interlock") {
		t.Errorf("got %v", err)
	}
}

// Nothing of the mutants may be in what is released: they are texts here, and files of a folder that is removed.
func TestEdits_ChangeNoFileOfTheClone(t *testing.T) {
	dir, top := t.TempDir(), root(t)
	before := modified(t, top)
	if _, err := writeOverlay(top, dir); err != nil {
		t.Fatal(err)
	}
	if after := modified(t, top); after != before {
		t.Errorf("it has written into the clone")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*switch_of_mutants.go"))
	if err != nil || len(files) < 8 {
		t.Errorf("%d packages are edited, %v", len(files), err)
	}
}

// modified lists the files of the edits with their times.
func modified(t *testing.T, top string) string {
	t.Helper()
	var b strings.Builder
	for _, m := range All() {
		for _, e := range m.Edits {
			dir := filepath.Dir(filepath.Join(top, filepath.FromSlash(e.File)))
			all, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range all {
				info, err := f.Info()
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&b, dir, f.Name(), info.ModTime())
			}
		}
	}
	return b.String()
}

func root(t *testing.T) string {
	t.Helper()
	top, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func TestMerge_ReplacesTheRowsOfTheSameMutants(t *testing.T) {
	old := "# head\n\n| mutant |\n|---|\n| M1 | a |\n| M2 | b |\n| M2 | c |\n| M10 | d |\n"
	page := "# other head\n\n| mutant |\n|---|\n| M2 | x |\n| M2 | y |\n| M2 | z |\n| M3 | new |\n"
	want := "# head\n\n| mutant |\n|---|\n| M1 | a |\n| M2 | x |\n| M2 | y |\n| M2 | z |\n| M10 | d |\n| M3 | new |\n"
	if got := Merge(old, page); got != want {
		t.Errorf("got %q", got)
	}
}
