package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/filelock"
)

// fixedHold is a hold whose renewals have stopped: its deadline stays where it is, and nobody says that it is lost.
type fixedHold struct{ deadline time.Time }

func (h fixedHold) Lost() <-chan struct{} { return nil }
func (h fixedHold) Err() error            { return nil }
func (h fixedHold) Deadline() time.Time   { return h.deadline }

// runJob runs a shell script under a hold.
func runJob(t *testing.T, h hold, b budget, script string) jobEnd {
	t.Helper()
	return runJobWith(t, h, b, make(chan os.Signal, 1), script)
}

func runJobWith(t *testing.T, h hold, b budget, arriving chan os.Signal, script string) jobEnd {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return jobEnd{}
	}
	defer null.Close()
	j := &job{
		hold: h, budget: b, signals: &signals{ch: arriving}, say: t.Logf,
		path: "/bin/sh", argv: []string{"sh", "-c", script}, env: os.Environ(),
	}
	end, err := j.run(null, null, null)
	if err != nil {
		t.Error(err)
	}
	return end
}

func TestJob_IsDeadAMarginBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	// TERM is due after 4 s, for the shell has its trap then, and KILL a second later: the rest is for busy machines.
	deadline := time.Now().Add(15 * time.Second)
	end := runJob(t, fixedHold{deadline}, budget{grace: time.Second, margin: 10 * time.Second},
		`trap "" TERM; while :; do sleep 0.05; done`)
	if left := time.Until(deadline); left <= 0 {
		t.Errorf("the job ended %v after the deadline", -left)
	}
	if !end.lost || end.code() != 128+9 {
		t.Errorf("lost %v, code %d; want a kill because of the lock", end.lost, end.code())
	}
}

func TestJob_GetsTermAGraceBeforeThat(t *testing.T) {
	t.Parallel()
	// TERM is due after 4 s, for the shell has its trap then, and 15 s are left.
	deadline := time.Now().Add(19 * time.Second)
	end := runJob(t, fixedHold{deadline}, budget{grace: 10 * time.Second, margin: 5 * time.Second},
		`trap "exit 5" TERM; while :; do sleep 0.05; done`)
	if left := time.Until(deadline); left < 11*time.Second {
		t.Errorf("TERM came so late that only %v were left", left)
	}
	if !end.lost || end.code() != 5 {
		t.Errorf("lost %v, code %d; want the code that the job ended with after TERM", end.lost, end.code())
	}
}

// Where the lock cannot run out, TERM gives the command all the time that it takes: the grace would be over long
// before.
func TestJob_OfAPatientBudget_HasTheTimeThatItTakesAfterTerm(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		patient bool
		code    int
	}{"patient": {true, 5}, "with a grace": {false, 128 + 9}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ready, end := make(chan os.Signal, 1), make(chan jobEnd, 1)
			dir := t.TempDir()
			go func() { // ends with the job
				end <- runJobWith(t, fixedHold{}, budget{grace: time.Nanosecond, patient: row.patient}, ready,
					`trap "sleep 0.3; exit 5" TERM; touch `+dir+`/ready; while :; do sleep 0.02; done`)
			}()
			w := &world{t: t, dir: dir}
			w.read("ready")
			ready <- syscall.SIGTERM
			if end := <-end; end.lost || end.code() != row.code {
				t.Errorf("lost %v, code %d; want %d", end.lost, end.code(), row.code)
			}
		})
	}
}

func TestBudget_OfFiles_IsPatient_UnlessAGraceIsGiven(t *testing.T) {
	d, err := filelock.New(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	e := &engine{driver: d}
	for _, given := range []bool{true, false} {
		if b, err := e.budget(&runOptions{graceGiven: given}); err != nil || b.patient == given {
			t.Errorf("a grace is given: %v, patient: %v, %v", given, b.patient, err)
		}
	}
}

func TestJob_WithoutADeadline_EndsByItself(t *testing.T) {
	t.Parallel()
	if end := runJob(t, fixedHold{}, budget{}, "exit 3"); end.lost || end.code() != 3 {
		t.Errorf("lost %v, code %d", end.lost, end.code())
	}
}

// A second cause, such as ^C after the lock was lost, gives a group that is killed already no grace.
func TestJob_ThatIsKilled_IsGivenNoGraceAgain(t *testing.T) {
	j := &job{killed: true}
	if j.killBy(time.Now().Add(time.Minute)); !j.killAt.IsZero() {
		t.Errorf("a job that was killed is to be killed at %v", j.killAt)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "60") // the group of the job
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.child, j.asked, j.budget.patient = &child{pid: cmd.Process.Pid}, 1, true
	if j.changed(0); !j.killAt.IsZero() || j.giveUpAt.IsZero() {
		t.Errorf("after the command's end the group is killed at %v and waited for until %v", j.killAt, j.giveUpAt)
	}
	_ = cmd.Wait() // it was killed
}

func TestCommandError_OfAShortage_IsNotTheCommands(t *testing.T) {
	for err, want := range map[error]int{
		syscall.EMFILE: exitFailed, syscall.EAGAIN: exitFailed, syscall.ENOMEM: exitFailed, syscall.ENFILE: exitFailed,
		syscall.EACCES: exitNotExecutable, syscall.ENOENT: exitNotFound,
	} {
		if o := judge(commandError("/bin/cmd", err)); o.exit != want {
			t.Errorf("%v: exit code %d, want %d", err, o.exit, want)
		}
	}
}
