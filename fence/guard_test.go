package fence

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func writer(token uint64, nonce string) Stamp { return Stamp{Token: token, Nonce: nonce} }
func reader(token uint64, nonce string) Stamp { return Stamp{Token: token, Nonce: nonce, Shared: true} }

func TestCheck_LetsPassWhoIsNewerOrItself(t *testing.T) {
	tests := map[string]struct {
		before []Stamp
		s      Stamp
		seen   Stamp // zero if s passes
	}{
		"the first":                            {nil, writer(1, "a"), Stamp{}},
		"a newer writer":                       {[]Stamp{writer(1, "a")}, writer(2, "b"), Stamp{}},
		"an older writer":                      {[]Stamp{writer(2, "b")}, writer(1, "a"), writer(2, "b")},
		"the writer itself":                    {[]Stamp{writer(2, "b")}, writer(2, "b"), Stamp{}},
		"another writer with the same token":   {[]Stamp{writer(2, "b")}, writer(2, "c"), writer(2, "b")},
		"an older reader after a newer reader": {[]Stamp{reader(2, "b")}, reader(1, "a"), Stamp{}},
		"an older reader after a newer writer": {[]Stamp{writer(2, "b")}, reader(1, "a"), writer(2, "b")},
		"an older writer after a newer reader": {[]Stamp{reader(2, "b")}, writer(1, "a"), reader(2, "b")},
		"the marked writer, a newer reader was": {
			[]Stamp{writer(1, "a"), reader(2, "b")}, writer(1, "a"), reader(2, "b"),
		},
		"an older writer, an older reader came last": {
			[]Stamp{reader(3, "c"), reader(1, "a")}, writer(2, "b"), reader(3, "c"),
		},
		"a writer that goes on as a reader": {[]Stamp{writer(2, "b")}, reader(2, "b"), Stamp{}},
		"and that writes again":             {[]Stamp{writer(2, "b"), reader(2, "b")}, writer(2, "b"), Stamp{}},
		"a reader that was upgraded":        {[]Stamp{reader(2, "b")}, writer(3, "b"), Stamp{}},
		"a refusal raises nothing":          {[]Stamp{writer(2, "b"), writer(1, "a")}, writer(2, "b"), Stamp{}},
		"of two in the way the newer one":   {[]Stamp{writer(2, "b"), reader(4, "d")}, writer(1, "a"), reader(4, "d")},
		"without nonces":                    {[]Stamp{writer(2, "")}, writer(2, ""), Stamp{}},
		"the largest token":                 {[]Stamp{writer(1, "a")}, writer(math.MaxInt64, "z"), Stamp{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var g MemoryGuard
			for _, s := range test.before {
				_ = g.Check("r", s) // a refusal is part of a story
			}
			requireVerdict(t, g.Check("r", test.s), "r", test.s, test.seen)
		})
	}
}

// requireVerdict fails unless err is a guard's refusal of s because of seen, or nil if seen is zero.
func requireVerdict(t *testing.T, err error, resource string, s, seen Stamp) {
	t.Helper()
	if seen == (Stamp{}) {
		if err != nil {
			t.Errorf("got %v, want it to pass", err)
		}
		return
	}
	var stale *StaleError
	if !errors.As(err, &stale) || !errors.Is(err, ErrStale) {
		t.Fatalf("got %v, want a *StaleError", err)
	}
	if want := (StaleError{Resource: resource, Have: s, Seen: seen}); *stale != want {
		t.Errorf("got %+v, want %+v", *stale, want)
	}
}

func TestCheck_KeepsResourcesApart(t *testing.T) {
	var g MemoryGuard
	for _, resource := range []string{"a", "A", "a ", "ä"} {
		for _, token := range []uint64{9, 10} {
			if err := g.Check(resource, writer(token, "n")); err != nil {
				t.Errorf("%q: %v", resource, err)
			}
		}
	}
}

func TestCheck_OfWhatMakesNoSense_SaysSo(t *testing.T) {
	tests := map[string]struct {
		resource string
		s        Stamp
		want     string
	}{
		"zero stamp":    {"r", Stamp{}, "Lease.Stamp"},
		"no token":      {"r", Stamp{Nonce: "a"}, "Lease.Stamp"},
		"huge token":    {"r", writer(1<<63, "a"), "2^63"},
		"long nonce":    {"r", writer(1, strings.Repeat("n", 256)), "255"},
		"strange nonce": {"r", writer(1, "\xff"), "UTF-8"},
		"empty":         {"", writer(1, "a"), "empty"},
		"long":          {strings.Repeat("r", 513), writer(1, "a"), "512"},
		"not UTF-8":     {"\xff", writer(1, "a"), "UTF-8"},
		"zero byte":     {"a\x00", writer(1, "a"), "zero byte"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var g MemoryGuard
			err := g.Check(test.resource, test.s)
			if err == nil || errors.Is(err, ErrStale) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error about %q", err, test.want)
			}
		})
	}
}

func TestStaleError_NamesBoth(t *testing.T) {
	err := (&StaleError{Resource: "stock:42", Have: writer(1, "a"), Seen: reader(2, "b")}).Error()
	want := `fence: "stock:42" refuses writer 1 (nonce a): reader 2 (nonce b) was there`
	if err != want {
		t.Errorf("got %s\nwant %s", err, want)
	}
}

func TestDo_IsOneStepWithTheCheck(t *testing.T) {
	var g MemoryGuard
	inside, proceed := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	var order []string
	go func() { // ends when proceed is closed
		first <- g.Do("r", writer(1, "a"), func() error {
			close(inside)
			<-proceed
			order = append(order, "old")
			return nil
		})
	}()
	<-inside
	second := make(chan error)
	go func() { // ends with the effect of the first
		second <- g.Do("r", writer(2, "b"), func() error { order = append(order, "new"); return nil })
	}()
	if err := g.Check("other", writer(1, "a")); err != nil { // another resource does not wait
		t.Error(err)
	}
	close(proceed)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Fatal(err)
	}
	if strings.Join(order, " ") != "old new" {
		t.Errorf("the effects came as %v", order)
	}
	stale := g.Do("r", writer(1, "a"), func() error { t.Error("a stale effect"); return nil })
	if !errors.Is(stale, ErrStale) {
		t.Errorf("got %v", stale)
	}
}

func TestDo_ReturnsTheEffectsError_AndTheMarkStays(t *testing.T) {
	var g MemoryGuard
	failed := errors.New("disk full")
	if err := g.Do("r", writer(2, "b"), func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if err := g.Check("r", writer(1, "a")); !errors.Is(err, ErrStale) {
		t.Errorf("got %v, want the mark to stay", err)
	}
	if err := g.Do("r", writer(2, "b"), nil); err == nil || !strings.Contains(err.Error(), "function") {
		t.Errorf("got %v", err)
	}
}

func TestForget_LetsEverybodyPassAgain(t *testing.T) {
	var g MemoryGuard
	_ = g.Check("r", writer(2, "b"))
	g.Forget("r")
	g.Forget("never seen")
	if err := g.Check("r", writer(1, "a")); err != nil {
		t.Error(err)
	}
}
