package fencemodel

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/handoff"
)

// limit bounds every search, so that a change which makes the model explode fails instead of eating the machine.
const limit = 9_000_000

// growing is a lock whose tokens grow, and forgetful one whose tokens may go back.
func growing(r Rules) *model   { return &model{rules: r, numbers: 2} }
func forgetful(r Rules) *model { return &model{rules: r, numbers: 2, forgets: true} }

// requireSound fails if m has a fault, was not searched completely, or is so small that this says nothing.
func requireSound(t *testing.T, least int, m *model) {
	t.Helper()
	t.Parallel()
	r := handoff.Search(m, limit)
	if r.Fault != "" || !r.Complete || r.States < least {
		t.Fatalf("complete: %v, want no fault and at least %d states: %v", r.Complete, least, r)
	}
	t.Log(r)
}

func TestSound_WithGrowingTokens_HasNoFault(t *testing.T) { requireSound(t, 10_000, growing(Sound())) }

func TestSound_WithTokensThatGoBack_HasNoFault(t *testing.T) {
	requireSound(t, 10_000, forgetful(Sound()))
}

func TestWithoutARule_AFaultIsFound(t *testing.T) {
	for _, test := range []struct {
		name  string
		model func(r Rules) *model
		off   func(r *Rules)
		want  handoff.Fault
	}{
		{"FenceOnWritesOnly", growing, func(r *Rules) { r.CheckReads = false }, LostUpdate},
		{"FenceOnWritesOnly", growing, func(r *Rules) { r.CheckReads = false }, UnstableRead},
		{"OneMark", growing, func(r *Rules) { r.TwoMarks = false }, WrongRefusal},
		{"ReadersDoNotCount", growing, func(r *Rules) { r.ReadersCount = false }, UnstableRead},
		{"MarkOfTheLastReader", growing, func(r *Rules) { r.MarkGrows = false }, UnstableRead},
		{"MarkedWriterAlwaysPasses", growing, func(r *Rules) { r.WriterHeedsReaders = false }, UnstableRead},
		{"MarkedWriterAlwaysPasses", growing, func(r *Rules) { r.WriterHeedsReaders = false }, StaleEffect},
		{"MarkedWriterAlwaysPasses", growing, func(r *Rules) { r.WriterHeedsReaders = false }, LostUpdate},
		{"DowngradedWriterMayNotRead", growing, func(r *Rules) { r.WriterMayRead = false }, WrongRefusal},
		{"BareTokensThatGoBack", forgetful, func(r *Rules) { r.Nonces = false }, LostUpdate},
		{"EachPassesOnce", growing, func(r *Rules) { r.Itself = false }, WrongRefusal},
		{"CheckBeforeTheEffect", growing, func(r *Rules) { r.Atomic = false }, LostUpdate},
		{"CheckBeforeTheEffect", growing, func(r *Rules) { r.Atomic = false }, StaleEffect},
		{"UpgradeKeepsItsToken", growing, func(r *Rules) { r.UpgradeMints = false }, WrongRefusal},
	} {
		what, _, _ := strings.Cut(string(test.want), ":")
		t.Run(test.name+"/"+what, func(t *testing.T) {
			t.Parallel()
			rules := Sound()
			test.off(&rules)
			m := test.model(rules)
			m.only = test.want
			r := handoff.Search(m, limit)
			if r.Fault != test.want {
				t.Fatalf("the fault is %q, want %q: %v", r.Fault, test.want, r)
			}
			t.Log(r)
		})
	}
}

// With tokens that never go back, unique tokens are enough.
func TestBareTokens_ThatGrow_HaveNoFault(t *testing.T) {
	rules := Sound()
	rules.Nonces = false
	requireSound(t, 10_000, growing(rules))
}

func TestEveryRule_IsOnInSoundAndSwitchedOffByATest(t *testing.T) {
	text, err := os.ReadFile("fencemodel_test.go")
	if err != nil {
		t.Fatal(err)
	}
	sound := reflect.ValueOf(Sound())
	for i := range sound.NumField() {
		name := sound.Type().Field(i).Name
		if !sound.Field(i).Bool() {
			t.Errorf("Sound leaves %s off", name)
		}
		if !strings.Contains(string(text), "r."+name+" = false") {
			t.Errorf("no test switches %s off, so nobody knows that the rule is needed", name)
		}
	}
}

// The model's rule is that of package fence, for all marks that three touches can leave.
func TestSoundRules_AreThoseOfPackageFence(t *testing.T) {
	rules := Sound()
	var stamps []stamp
	for token := int8(1); token <= 3; token++ {
		for nonce := int8(1); nonce <= 2; nonce++ {
			stamps = append(stamps, stamp{mark{token, nonce}, false}, stamp{mark{token, nonce}, true})
		}
	}
	var follow func(k marks, before []stamp)
	follow = func(k marks, before []stamp) {
		if len(before) == 4 {
			return
		}
		for _, s := range stamps {
			told := slices.Concat(before, []stamp{s})
			want, after := rules.passes(k, s), k
			if want {
				after = rules.raised(k, s)
			}
			if got := passesFence(told); got != want {
				t.Fatalf("after %v package fence says %v, the model %v", told, got, want)
			}
			follow(after, told)
		}
	}
	follow(marks{}, nil)
}

// passesFence reports whether package fence lets the last of some stamps pass.
func passesFence(stamps []stamp) bool {
	var g fence.MemoryGuard
	var err error
	for _, s := range stamps {
		err = g.Check("r", fence.Stamp{Token: uint64(s.token), Nonce: string(rune('a' + s.nonce)), Shared: s.shared})
	}
	return !errors.Is(err, fence.ErrStale)
}
