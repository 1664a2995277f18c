package check

import (
	"encoding/json"
	"os"
	"path/filepath"
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
		Lease:  time.Second, Heal: time.Second, Quiet: 1, End: 100 * ms, Ordered: true,
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
		entry := register.Entry{
			At: at + 2*ms, Proc: proc, Name: "a", Token: token, Nonce: "n", Fenced: fenced, Before: n, Value: n,
		}
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

// move shifts what a process did.
func (s *story) move(proc int, by history.Instant) {
	for i := range s.events {
		if s.events[i].Proc == proc && s.events[i].Op != history.Start {
			s.events[i].At += by
		}
	}
}
