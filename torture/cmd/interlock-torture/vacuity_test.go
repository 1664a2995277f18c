package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// In a run in which nobody came to write nothing can have been lost: that is no success.
func TestARun_WithoutAWrite_IsInconclusive(t *testing.T) {
	dir := t.TempDir()
	about, err := json.Marshal(run.About{Config: run.Config{Engine: "file", Faults: []target.Fault{target.None}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{run.AboutFile: string(about), register.LogFile: "", run.FaultsFile: ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := history.Create(dir, "proc")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	err = command(t.Context(), []string{"check", dir})
	if !errors.Is(err, errVacuous) || !strings.Contains(err.Error(), "K1: nothing was written") {
		t.Errorf("got %v", err)
	}
}

// T2 counts over all of an engine's runs, and over those of all engines.
func TestT2_IsInconclusive_IfItsControlsAre(t *testing.T) {
	made := func(engine string, f check.Figures) *cell {
		g, err := target.Find(engine)
		if err != nil {
			t.Fatal(err)
		}
		return &cell{fault: target.Kill, Config: &run.Config{Target: g}, rep: &check.Report{
			Figures: f, Verdicts: []*check.Verdict{{Check: "K1"}, {Check: "K4", Of: 1}},
		}}
	}
	plenty := check.Figures{
		Grants: 1, HolderBlows: 20, PlainLost: check.Causes{Overruns: 9}, Stale: check.Causes{Faults: 29, Overruns: 70},
		WaiterBlows: 1, Turns: 5, Wakes: 4,
		Ends: check.Ends{register.Releases: 1, register.Converts: 1, register.Withdraws: 1},
	}
	rest := check.Figures{
		Grants: 1, HolderBlows: 10, PlainLost: check.Causes{Faults: 1}, Stale: check.Causes{Faults: 1}, Wakes: 1,
	}
	without := func(spoil func(f *check.Figures)) check.Figures {
		f := rest
		spoil(&f)
		return f
	}
	for _, row := range []struct {
		of      check.Figures // of the second of two engines
		chosen  bool
		lacking []string
	}{
		{of: rest},
		{of: without(func(f *check.Figures) { f.HolderBlows = 9 }), lacking: []string{
			"etcd: 9 faults that hit a holder, and 10 are needed",
			"all runs together: 29 faults that hit a holder, and 30 are needed",
		}},
		{of: without(func(f *check.Figures) { f.PlainLost = check.Causes{} }), lacking: []string{
			"etcd: 0 updates lost without a fence, and 1 are needed",
			"all runs together: 0 updates lost by faults without a fence, and 1 are needed",
		}},
		{
			of:      without(func(f *check.Figures) { f.PlainLost = check.Causes{Overruns: 7} }),
			lacking: []string{"all runs together: 0 updates lost by faults"},
		},
		{of: without(func(f *check.Figures) { f.Stale = check.Causes{} }), lacking: []string{
			"etcd: 0 stale", "all runs together: 29 stale requests refused after faults",
			"all runs together: 99 stale requests refused,",
		}},
		{
			of:      without(func(f *check.Figures) { f.Stale = check.Causes{Overruns: 9} }),
			lacking: []string{"29 stale requests refused after faults"},
		},
		{of: without(func(f *check.Figures) { f.Wakes = 0 }), lacking: []string{"4 waits that a signal ended"}},
		{of: without(func(f *check.Figures) { f.Wakes = 0 }), chosen: true},
		// skipped: nobody was granted anything
		{
			of: check.Figures{
				HolderBlows: 10, PlainLost: check.Causes{Faults: 1}, Stale: check.Causes{Faults: 1}, Wakes: 1,
			},
		},
	} {
		cells := []*cell{made("redis", plenty), made("etcd", row.of)}
		lacks := vacuity(cells, !row.chosen)
		if len(lacks) != len(row.lacking) {
			t.Errorf("%+v: got %q, want %q", row.of, lacks, row.lacking)
			continue
		}
		page := guarantees(cells, "", lacks)
		for i, want := range row.lacking {
			if !strings.Contains(lacks[i], want) || !strings.Contains(page, want) {
				t.Errorf("%+v: got %q, want %q, and on the page", row.of, lacks[i], want)
			}
		}
	}
}

// What by chance was inconclusive is tried again; what is broken, or could not be done, is not.
func TestAnInconclusiveRun_IsMadeAgain(t *testing.T) {
	for _, row := range []struct {
		says []error
		made int
	}{
		{[]error{nil}, 1},
		{[]error{errBroken}, 1},
		{[]error{errVacuous, nil}, 2},
		{[]error{errVacuous, errVacuous, errBroken}, 3},
		{[]error{errVacuous, errVacuous, errVacuous}, 3},
	} {
		made := 0
		rep, err := conclusive(func(try uint64) (*check.Report, error) {
			if try != uint64(made) {
				t.Errorf("try %d after %d", try, made)
			}
			made++
			return &check.Report{Figures: check.Figures{Grants: made}}, row.says[made-1]
		})
		if made != row.made || !errors.Is(err, row.says[made-1]) || rep.Figures.Grants != made {
			t.Errorf("%v: made %d times, want %d; it says %v of run %d",
				row.says, made, row.made, err, rep.Figures.Grants)
		}
	}
}

// A cell that proves nothing does not say that anything was kept.
func TestACell_ThatIsInconclusive_SaysWhy(t *testing.T) {
	g, err := target.Find("redis")
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{fault: target.Kill, Config: &run.Config{Target: g}, rep: &check.Report{Verdicts: []*check.Verdict{
		{Check: "K1", Vacuous: "nothing was written"}, {Check: "K4"},
	}}}
	if got, want := c.exclusion(), "INCONCLUSIVE: K1: nothing was written"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	c.rep = &check.Report{
		About:    run.About{Config: run.Config{Faults: []target.Fault{target.Kill}}},
		Verdicts: []*check.Verdict{{Check: "K4", Of: 9}},
	}
	if got, want := c.exclusion(), "INCONCLUSIVE: the fault kill was not done once"; got != want {
		t.Errorf("nobody was killed: got %q, want %q", got, want)
	}
	c.rep.Figures.Blows = 1
	if got, want := c.exclusion(), "kept: 0 of 9 (33 %)"; got != want {
		t.Errorf("one was killed: got %q, want %q", got, want)
	}
}
