package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

func TestASoundRun_IsKept(t *testing.T) {
	rep := sound().judge(t)
	for _, v := range rep.Verdicts {
		if !v.OK() || len(v.Faults) > 0 {
			t.Error(v)
		}
	}
	if rep.Figures.Grants != 2 || rep.Figures.Increments != 2 || rep.Figures.PlainLost != (Causes{}) {
		t.Errorf("got %v", rep.Figures)
	}
}

// spoiled is a fault in a sound run, the check that it turns red, and what that says.
type spoiled struct {
	check, says string
	spoil       func(s *story)
}

// Each fault turns its own check red, and no other.
func TestAFault_IsFoundByItsCheck(t *testing.T) {
	findEach(t, []spoiled{
		{"K1", "wrote 1 over 1", func(s *story) { s.log[5].Value = 1 }},
		{"K2", "token 99 passed after", func(s *story) { s.log[4].Token, s.log[5].Token = 99, 99 }},
		{"K2", "token 100 passed after", func(s *story) { s.log[4].Token, s.log[4].Nonce = 100, "other" }},
		{"K2", "read 2, and then 3", func(s *story) {
			read := register.Entry{
				Proc: 1, Name: "a", Token: 102, Nonce: "n", Fenced: true, Shared: true, Before: 2, Value: 2,
			}
			s.log = append(s.log, read)
			read.Value = 3
			s.log = append(s.log, read)
		}},
		{"K2", "token 102 passed after process 1 with token 103", func(s *story) {
			read := register.Entry{
				Proc: 1, Name: "a", Token: 103, Nonce: "n", Fenced: true, Shared: true, Before: 2, Value: 2,
			}
			write := register.Entry{Name: "a", Token: 102, Nonce: "n", Fenced: true, Write: true, Before: 2, Value: 3}
			s.log = append(s.log, read, write)
		}},
		{"K3", "was granted after", func(s *story) {
			for i := range s.events {
				if s.events[i].Token == 101 {
					s.events[i].Token = 99
				}
			}
		}},
		{"K4", "was sure until", func(s *story) { s.move(1, -15*ms) }},
		{"K5", "began 60ms late", func(s *story) {
			for i := range s.events {
				if e := &s.events[i]; e.Proc == 1 && e.Op == history.Write {
					e.Deadline = e.At - 60*ms
				}
			}
		}},
		{"K6", "token 101", func(s *story) {
			s.add(1, 35*ms, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 101})
		}},
		{"K7", "process 0, goroutine 0", func(s *story) { s.about.Quiet = 25 * ms }},
		{"K8", "60ms late", func(s *story) {
			s.add(1, 70*ms,
				history.Event{Seq: 2, Op: history.Acquire, Phase: history.Fail, Late: 60 * time.Millisecond})
		}},
		{"K9", "one holder", func(s *story) { s.about.Residue = []string{"a: one holder"} }},
		{"K10", "3 goroutines", func(s *story) { s.events[len(s.events)-1].Goroutines = 3 }},
		{"K10", "did not end", func(s *story) { s.about.Problems = []string{"proc 1 did not end"} }},
		{"K11", "writes beside", func(s *story) {
			s.share(0, 5*ms, history.Reads, 0)
			s.share(1, 7*ms, history.Writes, 0)
		}},
		{"K11", "reads beside", func(s *story) {
			s.share(0, 5*ms, history.Writes, 0)
			s.share(1, 7*ms, history.Reads, 0)
		}},
		{"K11", `"", with a stamp that reads`, func(s *story) {
			for i := range s.events {
				if e := &s.events[i]; e.Op == history.Acquire && e.Phase == history.OK {
					e.Stamp = history.Reads
				}
			}
		}},
		{"K11", "4 permits of 3", func(s *story) {
			s.share(0, 5*ms, history.Permits, 2)
			s.share(1, 7*ms, history.Permits, 2)
		}},
		{"K11", "re-entry has token 102", func(s *story) {
			s.add(1, 35*ms,
				history.Event{Seq: 1, Op: history.Reenter, Phase: history.OK, Name: "a", Token: 102, Nonce: "n"})
		}},
		{"K11", "let go after 2 of 3", func(s *story) { s.latch(history.OK, 2, 1) }},
		{"K11", "0 left after 2 of 3", func(s *story) { s.latch(history.Unknown, 2, 0) }},
		{"K11", "nobody was let go", func(s *story) { s.latch(history.Unknown, 2, 1, 0) }},
		{"K11", "given back with another", func(s *story) {
			s.add(1, 35*ms,
				history.Event{
					Seq: 1, Op: history.Reenter, Phase: history.Fail, Name: "a", Err: "given back with another",
				})
		}},
	})
}

func findEach(t *testing.T, all []spoiled) {
	t.Helper()
	for _, c := range all {
		s := sound()
		c.spoil(s)
		for _, v := range s.judge(t).Verdicts {
			switch {
			case v.Check == c.check && v.OK():
				t.Errorf("%s (%s) was not found: %v", c.check, c.says, v)
			case v.Check == c.check && !strings.Contains(strings.Join(v.Faults, "\n"), c.says):
				t.Errorf("%s says %q, want %q in it", c.check, v.Faults, c.says)
			case v.Check != c.check && !v.OK():
				t.Errorf("a fault for %s (%s) is found by another: %v", c.check, c.says, v)
			}
		}
	}
}

// What may be beside each other is.
func TestSharesAsTheyMayBe_AreKept(t *testing.T) {
	s := sound()
	s.share(0, 5*ms, history.Reads, 0)
	s.share(1, 6*ms, history.Reads, 0)
	s.share(0, 30*ms, history.Permits, 2)
	s.share(1, 31*ms, history.Permits, 1)
	s.latch(history.OK, 2, 1, 0)
	s.add(1, 35*ms, history.Event{Seq: 1, Op: history.Reenter, Phase: history.OK, Name: "a", Token: 101, Nonce: "n"})
	if v := s.judge(t).Find("K11"); !v.OK() || len(v.Faults) > 0 || v.Of != 8 || v.Vacuous != "" {
		t.Error(v)
	}
}

// Who was stopped between the grant and the return of Lock, for longer than the lease, finds the hold over and was
// never sure of it; unless it finds later that the hold lasts all the same.
func TestWhoseHoldWasOverWhenLockReturned_HeldNothing(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline history.Instant // at the grant
		found    bool            // to last, later
		faults   int
	}{
		{"it was over", 13 * ms, false, 0},
		{"it was not over", 5 * second, false, 1},
		{"it was over, and then it lasts", 13 * ms, true, 1},
	} {
		s := sound()
		e := history.Event{
			Gor: 9, Seq: 1, Op: history.Acquire, Phase: history.OK, Name: "a", Token: 90, Nonce: "x",
			Deadline: c.deadline,
		}
		s.add(2, 13*ms+10, e)
		if c.found {
			e.Op, e.Phase, e.Deadline = history.Read, history.Call, 5*second
			s.add(2, 15*ms, e)
		}
		if v := s.judge(t).Find("K4"); len(v.Faults) != c.faults {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

// That a process noticed that it was stopped excuses itself alone.
func TestTheLag_OfAStoppedProcess_ExcusesNobodyElse(t *testing.T) {
	for _, c := range []struct {
		late, stopped int
		fault         bool
	}{{0, 0, false}, {0, 1, true}} {
		s := sound()
		s.about.Faults = []target.Fault{target.Stop}
		for i := range s.events {
			if e := &s.events[i]; e.Proc == c.late && e.Op == history.Write {
				e.Deadline, e.At = e.At, e.At+100*ms
			}
		}
		s.add(c.stopped, 200*ms, history.Event{Op: history.Lag, Took: 190 * time.Millisecond})
		s.blows = []run.Blow{{From: 5 * ms, To: 195 * ms, Fault: target.Stop, Proc: c.stopped}}
		v := s.judge(t).Find("K5")
		if (len(v.Faults) > 0) != c.fault {
			t.Errorf("process %d is late while %d is stopped: %v", c.late, c.stopped, v)
		}
		// What is excused is not among the cases that were judged.
		if v.Of+v.Spared != 2 || (v.Spared == 1) == c.fault ||
			strings.Contains(v.String(), "1 more not judged") == c.fault {
			t.Errorf("process %d is late while %d is stopped: %v, %d of %d", c.late, c.stopped, v, v.Spared, v.Of)
		}
	}
}

// A run that is not judged by time counts who is late, and blames nobody.
func TestACall_IsNotLate_InARunThatIsNotJudgedByTime(t *testing.T) {
	for untimed, faults := range map[bool]int{false: 1, true: 0} {
		s := sound()
		s.about.Untimed = untimed
		s.add(1, 300*ms, history.Event{Seq: 2, Op: history.Acquire, Phase: history.Fail, Late: 232 * time.Millisecond})
		if v := s.judge(t).Find("K8"); len(v.Faults) != faults || v.Spared != 1-faults {
			t.Errorf("232 ms late, not judged by time: %v: %v", untimed, v)
		}
	}
}

// A process that is kept waiting for its processor again and again, each time for a moment, is late by the sum.
func TestACall_IsLateByMore_WhileItsProcessIsKeptWaitingAgainAndAgain(t *testing.T) {
	for _, c := range []struct {
		proc, moments, faults int
	}{{1, 0, 1}, {1, 1, 0}, {run.Coordinator, 1, 0}, {0, 3, 1}} {
		s := sound()
		s.add(1, 170*ms, history.Event{Seq: 2, Op: history.Acquire, Phase: history.Fail, Late: 60 * time.Millisecond})
		for i := range c.moments {
			s.add(c.proc, history.Instant(130+10*i)*ms, history.Event{Op: history.Lag, Took: 12 * time.Millisecond})
		}
		if v := s.judge(t).Find("K8"); len(v.Faults) != c.faults {
			t.Errorf("60 ms late, %d times not run for 12 ms (process %d): %v, want %d", c.moments, c.proc, v, c.faults)
		}
	}
}

// What a process does late because it stood still is not its fault, and what the engine cannot keep
// under a fault is counted.
func TestWhatIsExcused(t *testing.T) {
	s := sound()
	s.about.Faults = []target.Fault{target.Stop, target.ServerKill}
	s.move(1, -15*ms)
	for i := range s.events {
		if e := &s.events[i]; e.Proc == 0 && e.Op == history.Write {
			e.Deadline, e.At = e.At, e.At+500*ms
		}
	}
	s.add(1, 70*ms, history.Event{Seq: 2, Op: history.Acquire, Phase: history.Fail, Late: 60 * time.Millisecond})
	s.add(1, 60*ms, history.Event{Op: history.Lag, Took: 30 * time.Millisecond})
	s.blows = []run.Blow{{From: 12 * ms, To: 450 * ms, Fault: target.Stop, Proc: 0}}
	rep := s.judge(t)
	if k8 := rep.Find("K8"); k8.Of != 0 || k8.Spared != 1 {
		t.Errorf("a late call of who stood still was judged: %v", k8)
	}
	for _, v := range rep.Verdicts {
		if !v.OK() {
			t.Error(v)
		}
		if v.Check == "K4" && (len(v.Faults) != 1 || !strings.Contains(v.String(), "expected")) {
			t.Errorf("two holders were not counted: %v", v)
		}
	}
	if rep.Figures.HolderBlows != 1 {
		t.Errorf("got %v", rep.Figures)
	}
}

func TestVacuity_SaysWhatIsMissing(t *testing.T) {
	f := Figures{HolderBlows: 30, PlainLost: Causes{Overruns: 5}, Stale: Causes{Faults: 29, Overruns: 71}}
	missing := f.Vacuity(Least{HolderBlows: 30, PlainLost: 1, AnyLost: 5, Stale: 30, AnyStale: 101})
	want := []string{
		"0 updates lost by faults without a fence, and 1 are needed",
		"29 stale requests refused after faults, and 30 are needed",
		"100 stale requests refused, and 101 are needed",
	}
	if !slices.Equal(missing, want) {
		t.Errorf("got %q, want %q", missing, want)
	}
}

func TestDir_WithoutARun_SaysSo(t *testing.T) {
	if _, err := Dir(t.TempDir()); err == nil || !strings.Contains(err.Error(), "a run that has ended") {
		t.Errorf("got %v", err)
	}
}
