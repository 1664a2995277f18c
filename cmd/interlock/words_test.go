package main

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

func TestDescribeHeld_SaysWhatTheEngineTells(t *testing.T) {
	now := time.Date(2026, 11, 21, 2, 10, 15, 0, time.Local)
	for want, held := range map[string]interlock.HeldError{
		`"nightly" is held`:           {Name: "nightly"},
		`"nightly" is held by host:1`: {Name: "nightly", Client: "host:1"},
		`"nightly" is held by host:1 (owner x) since 02:10:03 (12s ago), token 123; lease ends in 18s unless renewed`: {
			Name: "nightly", Client: "host:1", Owner: "x", Token: 123, Since: now.Add(-12 * time.Second), Until: now.Add(18 * time.Second),
		},
		`"nightly" is held since 2026-11-18 00:10:15 (3d2h ago)`:        {Name: "nightly", Since: now.Add(-74 * time.Hour)},
		`"nightly" is held since 02:10:16 (0s ago)`:                     {Name: "nightly", Since: now.Add(time.Second)}, // another clock
		`"nightly" is held, token 7; lease ends in 0s unless renewed`:   {Name: "nightly", Token: 7, Until: now.Add(-time.Hour)},
		`"a\nb" is held since 02:09:15 (1m0s ago), token 1844674407370`: {Name: "a\nb", Since: now.Add(-time.Minute), Token: 1844674407370},
	} {
		if got := describeHeld(&held, now); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestBudget_DefaultGraceFitsEveryLease(t *testing.T) {
	for lease := time.Second; lease < 2*time.Hour; lease += lease / 7 {
		b := newBudget(lease, defaultGrace(lease))
		if err := b.check(); err != nil {
			t.Error(err)
		}
		// TERM must not come before a renewal had a second chance.
		if term := lease - b.drift - b.margin - b.grace; term < 2*b.renewal {
			t.Errorf("lease %v: TERM after %v, second renewal after %v", lease, term, 2*b.renewal)
		}
	}
}

func TestJudge_SaysWhatIsMostCertain(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		exit int
		word string
	}{
		"usage":       {usage("x"), 64, "usage"},
		"held":        {&interlock.HeldError{Cause: errors.New("late")}, 75, "held"},
		"gave up":     {&waitedError{&interlock.HeldError{}, 0}, 75, "held"},
		"own code":    {exitWith(0, &interlock.HeldError{}), 0, "held"},
		"lost":        {&interlock.LostError{}, 79, "lost"},
		"unavailable": {&interlock.UnavailableError{}, 69, "unavailable"},
		"unsupported": {interlock.ErrUnsupported, 64, "unsupported"},
		"not held":    {interlock.ErrNotHeld, 1, "not_held"},
		"signal":      {&signalError{15}, 143, "interrupted"},
		"not found":   {commandError("x", errors.ErrUnsupported), 126, "not_executable"},
		"anything":    {errors.New("x"), 125, "failed"},
	} {
		if got := judge(row.err); got.exit != row.exit || got.word != row.word {
			t.Errorf("%s: got %d %s, want %d %s", name, got.exit, got.word, row.exit, row.word)
		}
	}
}

func TestPrintable_KeepsTablesAndTerminalsWhole(t *testing.T) {
	for in, want := range map[string]string{
		"stock:42": "stock:42", "a b": `"a b"`, "a\tb": `"a\tb"`, "\x1b[31mred": `"\x1b[31mred"`, "锁": "锁", "": "", `a"b`: `"a\"b"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func FuzzParseHandle(f *testing.F) {
	f.Add((&handle{schemaVersion, "mutex", "nightly", "id", 1, time.Second, "me", ""}).String())
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHandle(s)
		if err != nil {
			return
		}
		again, err := parseHandle(h.String())
		if err != nil || *again != *h {
			t.Errorf("%q: %+v became %+v (%v)", s, h, again, err)
		}
	})
}
