package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// Where two holders are possible holds last for a lease, elsewhere for a fifth of one. Runs under faults that would
// otherwise outlast the lease have longer ones, and go on for longer.
func TestT2Cells_HaveTheLeasesThatTheirFaultsNeed(t *testing.T) {
	cells, err := t2Cells("redis-sentinel,redis-cluster")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		engine                  string
		fault                   target.Fault
		lease, hold, goes, each time.Duration
	}{
		{"redis-sentinel", target.Stop, 0, 2 * time.Second / 5, 10 * time.Second, 10 * time.Second},
		{"redis-sentinel", target.Wipe, 0, 2 * time.Second, 10 * time.Second, 10 * time.Second},
		{"redis-sentinel", target.CutFailover, 5 * time.Second, 5 * time.Second, 40 * time.Second, 10 * time.Second},
		{"redis-sentinel", target.CutFailover, 5 * time.Second, 5 * time.Second, time.Minute, time.Minute},
		{"redis-sentinel", retain, 0, 2 * time.Second / 5, time.Minute, time.Minute},
		{"redis-sentinel", pairs, 0, 2 * time.Second / 5, time.Minute, time.Minute},
		{"redis-cluster", target.Partition, 5 * time.Second, 5 * time.Second, 40 * time.Second, 20 * time.Second},
	} {
		g, err := target.Find(want.engine)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, c := range cells {
			if c.Target.Name != g.Name || c.fault != want.fault {
				continue
			}
			found = true
			if c.Lease != want.lease || c.Hold != want.hold || c.lasts(want.each) != want.goes {
				t.Errorf("%s under %s: leases of %v, holds of %v, for %v",
					g.Name, c.fault, c.Lease, c.Hold, c.lasts(want.each))
			}
		}
		if !found {
			t.Errorf("there is no run of %s under %s", g.Name, want.fault)
		}
	}
}

// A run whose history is kept is judged and not made again, unless it has not ended; one with
// other settings is refused.
func TestMade_OnceIfHistoriesAreKept(t *testing.T) {
	g, err := target.Find("file")
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{fault: target.Kill, Config: &run.Config{
		Target: g, Faults: []target.Fault{target.Kill}, Processes: 1, Goroutines: 1, Names: 1, Duration: time.Second,
		Hold: time.Millisecond, Seed: 1,
	}}
	keep := t.TempDir()
	about := filepath.Join(keep, "file-kill-1", run.AboutFile)
	begun := func(of *cell) history.Instant {
		t.Helper()
		rep, err := of.made(t.Context(), io.Discard, keep)
		if rep == nil {
			t.Fatal(err)
		}
		return rep.About.Begin
	}
	first := begun(c)
	if again := begun(c); again != first {
		t.Errorf("it began at %v, and again at %v", first, again)
	}
	if err := os.Remove(about); err != nil {
		t.Fatal(err)
	}
	if anew := begun(c); anew == first {
		t.Error("a run that has not ended was not made anew")
	}
	c.Hold *= 2
	if _, err := c.made(t.Context(), io.Discard, keep); err == nil || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("with other settings: %v", err)
	}
}
