package check

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

const ms = history.Instant(time.Millisecond)

// story is what a run has left, made up.
type story struct {
	about  run.About
	events []history.Event
	log    []register.Entry
	blows  []run.Blow
}

// sound is a run in which nothing is wrong: two processes hold one lock one after the other, and count.
func sound() *story {
	s := &story{about: run.About{
		Config: run.Config{Engine: "redis", Faults: []target.Fault{target.None}, Processes: 2, Goroutines: 1, Names: 1},
		Lease:  time.Second, Heal: time.Second, Quiet: 1, End: 100 * ms,
	}}
	for proc := range 2 {
		s.add(proc, 0, history.Event{Op: history.Start})
		s.hold(proc, 1, history.Instant(10+20*proc)*ms, uint64(100+proc))
	}
	for proc := range 2 {
		s.add(proc, 90*ms, history.Event{Op: history.End})
	}
	return s
}

func (s *story) add(proc int, at history.Instant, e history.Event) {
	e.Proc, e.At = proc, at+1
	s.events = append(s.events, e)
}

// hold adds an acquisition of 10 ms with a read and a write of each number.
func (s *story) hold(proc, seq int, at history.Instant, token uint64) {
	e := func(after history.Instant, op history.Op, phase history.Phase) {
		s.add(proc, at+after*ms, history.Event{
			Seq: seq, Op: op, Phase: phase, Name: "a", Token: token, Deadline: at + 900*ms, Nonce: "n",
		})
	}
	e(0, history.Acquire, history.Call)
	e(1, history.Acquire, history.OK)
	e(2, history.Read, history.Call)
	e(8, history.Write, history.Call)
	e(9, history.Release, history.Call)
	e(10, history.Release, history.OK)
	for _, fenced := range []bool{true, false} {
		n := 0
		for _, l := range s.log {
			if l.Write && l.Fenced == fenced {
				n = l.Value
			}
		}
		entry := register.Entry{At: at + 2*ms, Proc: proc, Name: "a", Token: token, Nonce: "n", Fenced: fenced, Before: n, Value: n}
		s.log = append(s.log, entry)
		entry.Write, entry.Value = true, n+1
		s.log = append(s.log, entry)
	}
}

// judge writes the story into a folder and has it judged.
func (s *story) judge(t *testing.T) *Report {
	t.Helper()
	dir := t.TempDir()
	w, err := history.Create(dir, "all")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.events {
		w.Write(e)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lines(t, filepath.Join(dir, register.LogFile), s.log)
	lines(t, filepath.Join(dir, run.FaultsFile), s.blows)
	lines(t, filepath.Join(dir, run.AboutFile), []run.About{s.about})
	rep, err := Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func lines[T any](t *testing.T, path string, all []T) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if err := json.NewEncoder(f).Encode(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestASoundRun_IsKept(t *testing.T) {
	rep := sound().judge(t)
	for _, v := range rep.Verdicts {
		if !v.OK() || len(v.Faults) > 0 {
			t.Error(v)
		}
	}
	if rep.Figures.Grants != 2 || rep.Figures.Increments != 2 || rep.Figures.PlainLost != 0 {
		t.Errorf("got %v", rep.Figures)
	}
}

// Each fault turns its own check red, and no other.
func TestAFault_IsFoundByItsCheck(t *testing.T) {
	for _, c := range []struct {
		check, says string
		spoil       func(s *story)
	}{
		{"K1", "wrote 1 over 1", func(s *story) { s.log[5].Value = 1 }},
		{"K2", "token 99 passed after", func(s *story) { s.log[4].Token, s.log[5].Token = 99, 99 }},
		{"K2", "token 100 passed after", func(s *story) { s.log[4].Token, s.log[4].Nonce = 100, "other" }},
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
			s.add(1, 70*ms, history.Event{Seq: 2, Op: history.Acquire, Phase: history.Fail, Late: 60 * time.Millisecond})
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
		{"K11", "4 permits of 3", func(s *story) {
			s.share(0, 5*ms, history.Permits, 2)
			s.share(1, 7*ms, history.Permits, 2)
		}},
		{"K11", "re-entry has token 102", func(s *story) {
			s.add(1, 35*ms, history.Event{Seq: 1, Op: history.Reenter, Phase: history.OK, Name: "a", Token: 102, Nonce: "n"})
		}},
		{"K11", "let go after 2 of 3", func(s *story) { s.latch(history.OK, 2, 1) }},
		{"K11", "0 left after 2 of 3", func(s *story) { s.latch(history.Unknown, 2, 0) }},
		{"K11", "nobody was let go", func(s *story) { s.latch(history.Unknown, 2, 1, 0) }},
		{"K11", "given back with another", func(s *story) {
			s.add(1, 35*ms, history.Event{Seq: 1, Op: history.Reenter, Phase: history.Fail, Name: "a", Err: "given back with another"})
		}},
	} {
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

// share adds a hold of 10 ms that may be beside others.
func (s *story) share(proc int, at history.Instant, how history.Share, weight int) {
	e := history.Event{Seq: 50, Name: string(how), Share: how, Weight: weight, Token: 500, Deadline: at + 900*ms}
	if how != history.Permits {
		e.Name = "rw"
	} else {
		e.Limit = 3
	}
	for i, phase := range []history.Phase{history.Call, history.OK, history.Call} {
		e.Op, e.Phase = history.Acquire, phase
		if i == 2 {
			e.Op = history.Read
		}
		s.add(proc, at+history.Instant(5*i)*ms, e)
	}
}

// latch adds one that is counted down and leaves what it leaves, and then what becomes of who waits for it.
func (s *story) latch(waited history.Phase, left ...int) {
	e := history.Event{Seq: 60, Name: "latch"}
	for i, n := range append(left, 0) {
		e.Op, e.Phase, e.Weight = history.CountDown, history.Call, 0
		if i == len(left) {
			e.Op, e.Phase = history.Await, waited
		}
		s.add(0, history.Instant(70+2*i)*ms, e)
		if e.Op == history.CountDown {
			e.Phase, e.Weight = history.OK, n
			s.add(0, history.Instant(71+2*i)*ms, e)
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

// A hold that is lost because the machine did not run its process for long is not lost by interlock.
func TestALoss_OfAStarvedProcess_IsNoFault(t *testing.T) {
	for took, faults := range map[time.Duration]int{300 * time.Millisecond: 0, 200 * time.Millisecond: 1} {
		s := sound()
		s.add(1, 35*ms, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 101})
		s.add(0, 34*ms, history.Event{Op: history.Lag, Took: took})
		if v := s.judge(t).Find("K6"); len(v.Faults) != faults {
			t.Errorf("after %v without the processor: %v", took, v)
		}
	}
}

// move shifts what a process did.
func (s *story) move(proc int, by history.Instant) {
	for i := range s.events {
		if s.events[i].Proc == proc && s.events[i].Op != history.Start {
			s.events[i].At += by
		}
	}
}

// What a process does late because it stood still is not its fault, and what the engine cannot keep under a fault is counted.
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
	s.blows = []run.Blow{{From: 5 * ms, To: 450 * ms, Fault: target.Stop, Proc: 0, Holder: true}}
	rep := s.judge(t)
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
	f := Figures{HolderBlows: 30, PlainLost: 0, Stale: 99}
	missing := f.Vacuity(Least{HolderBlows: 30, PlainLost: 1, Stale: 100})
	if len(missing) != 2 || !strings.Contains(missing[1], "99 stale requests refused, and 100 are needed") {
		t.Errorf("got %q", missing)
	}
}

func TestDir_WithoutARun_SaysSo(t *testing.T) {
	if _, err := Dir(t.TempDir()); err == nil || !strings.Contains(err.Error(), "a run that has ended") {
		t.Errorf("got %v", err)
	}
}
