package target

import (
	"slices"
	"testing"
)

// What is listed is known, once, and what breaks exclusion can be done.
func TestTargets_ListFaultsThatAreKnown(t *testing.T) {
	for _, g := range Targets() {
		for i, f := range g.Faults {
			if !slices.Contains(All(), f) {
				t.Errorf("%s has the fault %s, which nobody knows", g.Name, f)
			}
			if slices.Contains(g.Faults[:i], f) {
				t.Errorf("%s has the fault %s twice", g.Name, f)
			}
		}
		for f := range g.Broken {
			if !g.Can(f) {
				t.Errorf("%s is broken by %s, which cannot be done to it", g.Name, f)
			}
		}
	}
}
