package run

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/internal/childproc"
	_ "github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/worker"
)

// workerWord makes the test's program a client process.
const workerWord = "worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerWord {
		if err := worker.Run(context.Background(), childproc.JSON(os.Stdin, os.Stdout)); err != nil {
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

func newProcess(t *testing.T, reg *register.Server, dir string, args ...string) *process {
	return &process{self: append([]string{os.Args[0]}, args...), job: worker.Job{
		URL: "file://" + t.TempDir(), Register: reg.Addr(), Dir: dir, Goroutines: 2, Names: []string{"a"},
		Lease: time.Second, Hold: 10 * time.Millisecond, Patience: 5 * time.Second,
	}}
}

func newRegister(t *testing.T, dir string) *register.Server {
	reg, err := register.Listen(t.Context(), dir, "127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	})
	return reg
}

// A process that has been started records, so that a fault which hits it at once cannot keep it from that.
func TestAProcess_ThatCanOpenNothingFromTheBeginning_GoesOnWhenItCan(t *testing.T) {
	dir := t.TempDir()
	reg := newRegister(t, dir)
	p := newProcess(t, reg, dir, workerWord)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Load(dir); err != nil {
		t.Errorf("it was started, and has no history: %v", err)
	}
	if err := (&nemesis{}).closeFiles(t.Context(), p, 300*time.Millisecond); err != nil {
		t.Error(err)
	}
	healed := history.Now()
	awaitRecords(t, dir, "it gets on when it can open files again", func(all []history.Event) bool {
		return slices.ContainsFunc(all, func(e history.Event) bool {
			return e.Op == history.Acquire && e.Phase == history.OK && e.At > healed
		})
	})
	if err := p.end(20 * time.Second); err != nil {
		t.Error(err)
	}
}

func TestAProcess_ThatEndsBeforeItRecords_WasNotStarted(t *testing.T) {
	dir := t.TempDir()
	p := newProcess(t, newRegister(t, dir), dir, "-test.run=^$") // it does something else
	if err := p.start(); err == nil || !strings.Contains(err.Error(), "has not begun") {
		t.Errorf("got %v", err)
	}
}

// A client that cannot reach the register goes on trying: its goroutines are to be there when a fault is over.
func TestAProcess_WithoutARegister_TriesAgain(t *testing.T) {
	dir := t.TempDir()
	p := newProcess(t, newRegister(t, dir), dir, workerWord)
	later, err := register.Listen(t.Context(), t.TempDir(), "127.0.0.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	p.job.Register = later.Addr()
	if err := later.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.end(20 * time.Second); err != nil {
			t.Error(err)
		}
	}()
	awaitRecords(t, dir, "one of the two goroutines tries again", func(all []history.Event) bool {
		failed := 0
		for _, e := range all {
			if e.Op == history.Start && e.Phase == history.Fail {
				failed++
			}
		}
		return failed > 2
	})
}

// awaitRecords returns when the records in dir show what they are to show.
func awaitRecords(t *testing.T, dir, what string, show func(all []history.Event) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		all, err := history.Load(dir)
		if err != nil || ctx.Err() != nil {
			t.Fatalf("waiting until %s: %v, %v", what, err, all)
		}
		if show(all) {
			return
		}
		enginekit.Pause(ctx, 10*time.Millisecond)
	}
}
