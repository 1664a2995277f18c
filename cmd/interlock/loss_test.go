package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/faulty"
)

// The tests of this file run the whole command in this process, on a lease engine whose network they make bad, and look
// from a second client of the same store at what another machine would see.

// takeOver lets another client have the lock, and at the very moment at which it has it, nobody of the job may live.
func (w *world) takeOver(group int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	lease, err := w.other.Lock(ctx, "nightly")
	if err != nil {
		w.t.Fatal(err)
	}
	if living := livingIn(w.t, group); len(living) > 0 {
		w.t.Errorf("another client has the lock while these of the job live: %v", living)
	}
	if err := lease.Unlock(ctx); err != nil {
		w.t.Error(err)
	}
}

// stubborn is a job whose command and whose grandchild both take no notice of TERM.
const stubborn = `
trap 'echo term >> $DIR/term' TERM
sh -c 'trap "" TERM; echo up > '$DIR'/grandchild; while :; do sleep 0.05; done' &
while :; do sleep 0.05; done`

// shortLease leaves more than 150 ms between KILL and the end of the lease.
var shortLease = []string{"--lease", "3s"}

func TestRun_LockThatCannotBeRenewed_AllOfTheJobIsDeadBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(stubborn, shortLease...)
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
	r := w.start(stubborn, append(shortLease, "--lost-exit-code", "3")...)
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
echo up > $DIR/up; while :; do sleep 0.05; done`, shortLease...)
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
	r := w.start(`trap 'exit 9' TERM; while [ ! -e $DIR/go ]; do sleep 0.05; done; exit 5`, shortLease...)
	w.group()
	deadline := time.Now().Add(20 * time.Second)
	for w.control.Calls(faulty.Renew) < 3 && time.Now().Before(deadline) {
		<-time.After(5 * time.Millisecond)
	}
	w.file("go")
	r.wantExit(5)
}

func TestRun_BrokenLock_JobIsKilledAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.start(stubborn, "--lease", "10m")
	group := w.group()
	w.read("grandchild")
	for l, err := range w.other.Locks(t.Context(), "nightly") {
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
	w.file("go")
	r.wantExit(5)
	r.wantMessage("goes on without its lock")
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
			r := w.start("exit 6", append(row.flags, "--lease", "1s", "--timeout", "200ms")...)
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
