package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/torture/check"
	"github.com/interlock-go/interlock/torture/target"
	"github.com/interlock-go/interlock/torture/worker"
)

// TestMain makes the test's program a client process if a run starts it as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerWord {
		if err := worker.Run(context.Background(), childproc.JSON(os.Stdin, os.Stdout)); err != nil {
			fail(3, err)
		}
		return
	}
	os.Exit(m.Run())
}

// A run leaves a folder that can be judged again, with the same verdicts.
func TestRun_IsJudgedAndJudgedAgain(t *testing.T) {
	all := []struct{ engine, faults, more string }{
		{"file", "kill,stop", ""},
		{"redis", "kill,stop,lose-replies", " -workload retain -hold 20ms -lease 3s"},
		{"redlock", "cut,partition", ""},
		{"redis", "kill,stop,cut,slow", ""},
		{"redis", "slices,one-connection,evict", " -pairs"},
		{"redis-aof", "disk-full", ""},
		{"redis", "lose-ends", " -cancel 0.3 -hold 20ms"},
	}
	for _, row := range all[:longrun.Of(2, len(all))] {
		t.Run(row.engine+" "+row.faults, func(t *testing.T) {
			t.Parallel()
			runs(t, row.engine, row.faults, row.more)
		})
	}
}

// A run of several servers is beside those of the others: nothing here is judged by time.
func TestRun_OfSeveralServers_HasTheFaultsOfTheWaysToThem(t *testing.T) {
	longrun.Only(t)
	for _, engine := range []string{"redis-cluster", "etcd-3", "redis-sentinel-acked"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			runs(t, engine, "lose-replies,lose-ends,reset", "")
		})
	}
}

// runs makes a run and has it judged again, or skips t where one of its faults cannot be done. It is
// judged by everything but time: what else a machine does while tests run is not the engine's fault. "make
// faults" judges by time too.
func runs(t *testing.T, engine, faults, more string) {
	t.Helper()
	g, err := target.Find(engine)
	if err != nil {
		t.Fatal(err)
	}
	for f := range strings.SplitSeq(faults, ",") {
		if why := g.Withheld(target.Fault(f)); why != nil {
			t.Skip(why)
		}
	}
	args := "-engine " + engine + " -faults " + faults + more + " -untimed -workers 2x2 -names 1 -duration 3s -seed 1"
	dir := filepath.Join(t.TempDir(), "run")
	if err := command(t.Context(), append([]string{"run", "-dir", dir}, strings.Fields(args)...)); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	if err := command(t.Context(), []string{"check", dir}); err != nil {
		t.Errorf("%s: judged again: %v", args, err)
	}
	rep, err := check.Dir(dir)
	if err != nil || rep.Figures.Grants == 0 || rep.Figures.Blows == 0 {
		t.Errorf("%s: %+v, %v", args, rep, err)
	}
	if err := command(t.Context(), append([]string{"run", "-dir", dir}, strings.Fields(args)...)); err == nil {
		t.Errorf("a folder that is there was overwritten")
	}
}

func TestCommand_BadInput_IsUsage(t *testing.T) {
	for _, args := range []string{
		"", "nothing", "run -engine nothing", "run -workers 4", "run -nothing", "check", "t1 -nothing", "t0 -seeds 0",
		"t0 -row 0", "mutants -seeds 0", "mutants -nothing",
	} {
		if err := command(t.Context(), strings.Fields(args)); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
	for args, says := range map[string]string{
		"run -engine file -faults cut":       "cannot be done to file",
		"run -faults nothing":                `no fault "nothing"`,
		"run -long -faults kill":             "long holds are for runs without faults",
		"run -workload nothing":              `no workload "nothing": choose mixed, or from [retain held]`,
		"run -workload retain -long":         "neither for long holds",
		"run -workload retain -engine file":  "file cannot have the workload retain: it does not tell a holder",
		"mutants -only M99":                  `no mutant "M99": they are M1 to M`,
		"run -workers 0x1":                   "at least one process",
		"run -duration -1s":                  "not positive",
		"check " + t.TempDir():               "a run that has ended",
		"run -engine file -dir /dev/null/no": "not a directory",
	} {
		if err := command(t.Context(), strings.Fields(args)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
