package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The tests of this file run the whole command in this process, on a lease engine whose network they make bad, and look
// from a second client of the same store at what another machine would see.

// takeOver lets another client have the lock, and at the very moment at which it has it, nobody of the job may live. Of
// a process that is not run between KILL and the end of the lease nobody can promise that: then they are to be gone
// soon.
func (w *world) takeOver(group int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	longest := watchStalls(ctx)
	lease, err := w.other.Lock(ctx, "nightly")
	if err != nil {
		w.t.Fatal(err)
	}
	living := livingIn(w.t, group)
	if stall := longest(); len(living) > 0 && stall > 300*time.Millisecond {
		w.t.Logf("this process stood still for %v, so these of the job lived when another client got the lock: %v",
			stall, living)
		for end := time.Now().Add(patience); len(living) > 0 &&
			time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			living = livingIn(w.t, group)
		}
	}
	if len(living) > 0 {
		w.t.Errorf("another client has the lock while these of the job live: %v", living)
	}
	if err := lease.Unlock(ctx); err != nil {
		w.t.Error(err)
	}
}

// watchStalls notes for how long at a time this process was not run, until it is asked for the longest or ctx ends.
func watchStalls(ctx context.Context) (longest func() time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan time.Duration, 1)
	last := time.Now()
	go func() { // ends with ctx
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		var most time.Duration
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
			now := time.Now()
			most, last = max(most, now.Sub(last)), now
		}
		result <- most
	}()
	return func() time.Duration {
		cancel()
		return <-result
	}
}

// stubborn is a job whose command and whose grandchild both take no notice of TERM.
const stubborn = `
trap 'echo term >> $DIR/term' TERM
sh -c 'trap "" TERM; echo up > '$DIR'/grandchild; while :; do sleep 0.05; done' &
while :; do sleep 0.05; done`

// enoughLease leaves more than 600 ms between KILL and the end of the lease, and seconds for everything else.
var enoughLease = []string{"--lease", "12s"}

func TestRun_LockThatCannotBeRenewed_AllOfTheJobIsDeadBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(stubborn, enoughLease...)
	group := w.group()
	w.read("grandchild")
	w.control.Rules(faulty.Rule{Op: faulty.Renew, Drop: faulty.Request})
	w.takeOver(group)
	r.wantExit(exitLost)
	r.wantMessage("could not be renewed")
	r.wantMessage("SIGTERM")
	r.wantMessage(`"nightly" was lost`)
	if w.peek("term") == "" {
		t.Error("the job got no TERM before it was killed")
	}
}

func TestRun_ServerThatHangs_AllOfTheJobIsDeadBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(stubborn, append(slices.Clone(enoughLease), "--lost-exit-code", "3")...)
	group := w.group()
	w.read("grandchild")
	w.control.Pause()
	w.takeOver(group)
	w.control.Resume()
	r.wantExit(3)
}

func TestRun_LockThatCannotBeRenewed_JobHasTheGraceToCleanUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(`
trap 'sleep 0.1; echo done > $DIR/cleaned; exit 0' TERM
echo up > $DIR/up; while :; do sleep 0.05; done`, enoughLease...)
	w.read("up")
	w.control.Rules(faulty.Rule{Op: faulty.Renew, Drop: faulty.Reply})
	r.wantExit(exitLost) // although the job itself ended with 0
	if w.peek("cleaned") == "" {
		t.Error("the job was killed before its grace was over")
	}
}

func TestRun_RenewalThatFailsOnce_JobGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control.Rules(faulty.Rule{Op: faulty.Renew, Count: 1, Drop: faulty.Request})
	r := w.start(`trap 'exit 9' TERM; while [ ! -e $DIR/go ]; do sleep 0.05; done; exit 5`, enoughLease...)
	w.group()
	w.await("three renewals", func() bool { return w.control.Calls(faulty.Renew) >= 3 })
	w.file("go")
	r.wantExit(5)
}

func TestRun_BrokenLock_JobIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(stubborn, "--lease", "10m")
	group := w.group()
	w.read("grandchild")
	for l, err := range w.other.List(t.Context(), "nightly") {
		if err != nil {
			t.Fatal(err)
		}
		if err := w.other.Break(t.Context(), l.Kind, l.Name, l.Holders[0].Token); err != nil {
			t.Fatal(err)
		}
	}
	r.wantExit(exitLost)
	r.wantMessage("broken by an operator")
	if living := livingIn(t, group); len(living) > 0 {
		t.Errorf("these of the job live: %v", living)
	}
}

func TestRun_LossThatIsToBeIgnored_JobGoesOnWithAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(`while [ ! -e $DIR/go ]; do sleep 0.05; done; exit 5`, "--lease", "1s", "--on-lost", "ignore")
	w.group()
	w.control.Rules(faulty.Rule{Op: faulty.Renew, Drop: faulty.Request})
	lease, err := w.other.Lock(t.Context(), "nightly") // waits for the end of the lease
	if err != nil {
		t.Fatal(err)
	}
	w.await("the warning", func() bool { return strings.Contains(w.peek("stderr"), "goes on without its lock") })
	w.file("go")
	r.wantExit(5)
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRun_ReleaseThatFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags   []string
		want    int
		message string
	}{
		"IsAWarningAndTheJobsCodeCounts": {nil, 6, "warning: the lock could not be given back"},
		"IsAnErrorWithStrictRelease":     {[]string{"--strict-release"}, exitFailed, "could not be given back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.control.Rules(faulty.Rule{Op: faulty.Release, Err: errors.New("connection reset")})
			r := w.start("exit 6", append(row.flags, "--timeout", "3s")...) // it is tried for so long
			r.wantExit(row.want)
			r.wantMessage(row.message)
		})
	}
}

func TestRun_EngineThatDoesNotAnswer_IsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.control.Pause()
	r := w.start("exit 0", "--timeout", "200ms", "--lease", "1s")
	r.wantExit(exitUnavailable)
	w.control.Resume()
}
