package board

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestChanges_SayWhoHasGoneAndThenWhoHasCome(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	a := Holder{Client: "c", Owner: "A", Token: 1, Until: now.Add(time.Second)}
	b := Holder{Client: "c", Owner: "B", Token: 2}
	over, retained, late := a, a, a
	over.Cooldown, over.Until = true, now.Add(time.Minute)
	retained.Retained, retained.Owner = true, ""
	late.Until = now.Add(-time.Millisecond)
	labelled := a
	labelled.Label = "new"
	waits := func(owners ...string) (all []Waiter) {
		for _, o := range owners {
			all = append(all, Waiter{Client: "c", Owner: o})
		}
		return all
	}
	for name, row := range map[string]struct {
		before, after   []Holder
		queued, waiting []Waiter
		want            string
	}{
		"nothing":           {[]Holder{a}, []Holder{a}, waits("B"), waits("B"), ""},
		"another label":     {[]Holder{a}, []Holder{labelled}, nil, nil, ""},
		"a new holder":      {nil, []Holder{a}, nil, nil, "held x A"},
		"a hand-over":       {[]Holder{a}, []Holder{b}, waits("B"), nil, "released x A; held x B"},
		"the lease is over": {[]Holder{late}, nil, nil, nil, "ended x A"},
		"a rest": {
			[]Holder{a},
			[]Holder{over},
			nil, nil,
			"released x A (the lock stays closed for a while)",
		},
		"the end of a rest": {[]Holder{over}, nil, nil, nil, ""},
		"retained":          {[]Holder{a}, []Holder{retained}, nil, nil, "released x A (its client retains the lock)"},
		"taken over":        {[]Holder{retained}, []Holder{a}, nil, nil, "held x A"},
		"gives up":          {[]Holder{a}, []Holder{a}, waits("B", "C"), waits("C"), "left x B"},
		"waits":             {[]Holder{a}, []Holder{a}, nil, waits("B", "B"), "waiting x B; waiting x B"},
		"one of two alike":  {[]Holder{a, a}, []Holder{a}, nil, nil, "released x A"},
	} {
		before, after := mutexHeld("x", row.before...), mutexHeld("x", row.after...)
		before.Waiters, after.Waiters = row.queued, row.waiting
		got := Changes([]Lock{before}, []Lock{after}, now)
		slices.Reverse(got)
		if words(got) != row.want {
			t.Errorf("%s: got %q, want %q", name, words(got), row.want)
		}
	}
}

func TestChanges_FindLocksByNameAndKind(t *testing.T) {
	lock := func(kind driver.Kind, name string) Lock {
		return Lock{ID: ID(kind, name), Kind: kind, Name: name, Holders: []Holder{{Client: "c"}}}
	}
	got := Changes([]Lock{lock("mutex", "a"), lock("rw", "b")},
		[]Lock{lock("mutex", "a"), lock("mutex", "b"), lock("rw", "c")}, time.Time{})
	slices.Reverse(got)
	if words(got) != "held b; released b; held c" || got[2].Kind != "mutex" || got[1].Kind != "rw" {
		t.Errorf("%s", words(got))
	}
}
