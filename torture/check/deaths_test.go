package check

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// killed is sound with kills. The first process holds the lock from 11 to 19 ms, and the second asks for
// it at 30 and has it at 31.
func killed(kills ...run.Blow) *story {
	s := sound()
	s.about.Faults = []target.Fault{target.Kill}
	for _, b := range kills {
		b.Fault, b.To = target.Kill, b.From+ms
		s.blows = append(s.blows, b)
	}
	return s
}

func (s *story) asks(proc, seq int, at history.Instant, name string) {
	s.add(proc, at, history.Event{Seq: seq, Op: history.Acquire, Phase: history.Call, Name: name})
}

func TestDeaths_AreMeasuredUntilTheNextGrant(t *testing.T) {
	holder := run.Blow{Proc: 0, From: 16 * ms}
	for _, c := range []struct {
		name  string
		kills []run.Blow
		more  func(s *story)
		want  Delays
	}{
		{"of a holder", []run.Blow{holder}, nil, Delays{15*time.Millisecond + 1}},
		{"of who has released it", []run.Blow{{Proc: 0, From: 25 * ms}}, nil, nil},
		{"of a holder, and again when it has come back", []run.Blow{holder, {Proc: 0, From: 25 * ms}}, func(s *story) {
			s.add(0, 20*ms, history.Event{Op: history.Start})
		}, Delays{15*time.Millisecond + 1}},
		{"of a holder, and then of one who wanted it", []run.Blow{holder, {Proc: 2, From: 25 * ms}}, func(s *story) {
			s.asks(2, 1, 12*ms, "a")
		}, Delays{6*time.Millisecond + 1}},
		{
			"of a holder, and then of one who wanted another lock",
			[]run.Blow{holder, {Proc: 2, From: 25 * ms}},
			func(s *story) {
				s.asks(2, 1, 12*ms, "b")
			},
			Delays{15*time.Millisecond + 1},
		},
		{"of a holder, while one who lives may have it and waits for another", []run.Blow{holder}, func(s *story) {
			s.asks(2, 1, 12*ms, "a")
			s.asks(2, 2, 12*ms, "b")
		}, nil},
		{"of a holder, while one who lives has another and waits for it", []run.Blow{holder}, func(s *story) {
			s.asks(2, 1, 12*ms, "a")
			s.asks(2, 2, 12*ms, "A")
		}, Delays{15*time.Millisecond + 1}},
		{"of a holder of what nobody wanted for a lease", []run.Blow{holder}, func(s *story) {
			s.about.Lease = time.Millisecond
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := killed(c.kills...)
			if c.more != nil {
				c.more(s)
			}
			if got := s.judge(t).Figures.AfterDeath; !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Of a lease of 1 s, and as much for a grant to the dead, nothing is left after 2 s, and 200 ms more are the machine's.
func TestDeaths_AfterWhichALockStaysFreeForTooLong_BreakK7(t *testing.T) {
	const holder, other = 0, 2
	judged := func(dead int, granted history.Instant, more ...history.Event) *Verdict {
		s := killed(run.Blow{Proc: dead, From: 16 * ms})
		s.events = slices.DeleteFunc(s.events, func(e history.Event) bool {
			return e.Proc == 1 && e.Op != history.Start || e.Proc == dead && e.Op == history.Release
		})
		s.asks(other, 1, 12*ms, "a")
		s.asks(1, 1, 12*ms, "a")
		s.add(1, granted,
			history.Event{Seq: 1, Op: history.Acquire, Phase: history.OK, Name: "a", Token: 200, Nonce: "m"})
		for _, e := range more {
			s.add(1, e.At, e)
		}
		return s.judge(t).Find("K7")
	}
	lag := func(at history.Instant) history.Event {
		return history.Event{At: at, Op: history.Lag, Took: 50 * time.Millisecond}
	}
	for _, c := range []struct {
		name    string
		dead    int
		granted history.Instant
		more    []history.Event
		faults  int
	}{
		{"after the holder's death, in time", holder, 2210 * ms, nil, 0},
		{"after the holder's death, too late", holder, 2230 * ms, nil, 1},
		{"after the holder's death, too late on a busy machine", holder, 2230 * ms, []history.Event{lag(300 * ms)}, 0},
		{"given back in front of the dead, in time", other, 1210 * ms, nil, 0},
		{"given back in front of the dead, too late", other, 1230 * ms, nil, 1},
		{
			"given back in front of the dead, too late on a busy machine", other, 1230 * ms,
			[]history.Event{lag(300 * ms)},
			0,
		},
	} {
		if v := judged(c.dead, c.granted, c.more...); len(v.Faults) != c.faults {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

// Who was killed while it gave a lock back may not have been heard before.
func TestWhoDiesInItsRelease_HasTheLockUntilThen(t *testing.T) {
	for _, c := range []struct {
		granted history.Instant
		faults  int
	}{{2700 * ms, 0}, {2750 * ms, 1}} {
		s := killed(run.Blow{Proc: 0, From: 520 * ms})
		s.about.Faults = []target.Fault{target.KillAsking}
		s.events = slices.DeleteFunc(s.events, func(e history.Event) bool {
			return e.Proc == 1 && e.Op != history.Start ||
				e.Proc == 0 && e.Op == history.Release && e.Phase == history.OK
		})
		s.asks(1, 1, 12*ms, "a")
		s.add(1, c.granted,
			history.Event{Seq: 1, Op: history.Acquire, Phase: history.OK, Name: "a", Token: 200, Nonce: "m"})
		if v := s.judge(t).Find("K7"); len(v.Faults) != c.faults {
			t.Errorf("granted at %v: %v", time.Duration(c.granted), v)
		}
	}
}

// That a parked waiter is granted the lock long after it was given back, when somebody signals, is as it should be: K7
// holds no bound to it under kills, which it does hold to who asked for the lock.
func TestWhoIsWoken_DidNotWantTheLockBefore(t *testing.T) {
	for op, faults := range map[history.Op]int{history.Wait: 0, history.Acquire: 1} {
		s := sound()
		s.about.Faults = []target.Fault{target.KillWaiter}
		s.waits(0, 0, 95*ms, 100*ms, 201) // until 110
		e := history.Event{Gor: 1, Seq: 5, Name: "a", Op: op, Phase: history.Call}
		s.add(0, 104*ms, e)
		e.Phase, e.Token, e.Nonce, e.Deadline = history.OK, 202, "n", 5*second
		s.add(0, 4*second, e)
		if v := s.judge(t).Find("K7"); len(v.Faults) != faults {
			t.Errorf("%s: %v", op, v)
		}
	}
}

// A writer that has gone on as a reader is not the only one whom others wait for.
func TestWhoReadsOn_IsNotWaitedForAlone(t *testing.T) {
	for to, faults := range map[history.Share]int{history.Reads: 0, "": 1} {
		s := sound()
		s.about.Faults = []target.Fault{target.Kill}
		if to != "" {
			s.turns(0, 50*ms, history.Writes, to, history.OK, 300)
		} else {
			s.share(0, 45*ms, history.Writes, 0)
		}
		hold := s.events[len(s.events)-1]
		s.add(0, 80*ms, history.Event{Seq: hold.Seq, Name: "rw", Op: history.Release, Phase: history.Call})
		e := history.Event{Seq: 5, Name: "rw", Share: history.Writes, Op: history.Acquire, Phase: history.Call}
		s.add(1, 60*ms, e)
		e.Phase, e.Token, e.Deadline = history.OK, 600, 9*second
		s.add(1, 4*second, e)
		if v := s.judge(t).Find("K7"); len(v.Faults) != faults {
			t.Errorf("%q: %v", to, v)
		}
	}
}

// Who wants two locks at once waits for the second when it has the first: until then nobody may have wanted that.
func TestWhoWaitsForAnotherFirst_DoesNotWantTheLockYet(t *testing.T) {
	for _, c := range []struct {
		with   string
		third  bool // somebody waits for it, and for nothing else
		faults int
	}{{"A", false, 0}, {"A", true, 1}, {"", false, 1}} {
		s, with := sound(), c.with
		s.about.Faults = []target.Fault{target.Kill}
		if c.third {
			s.asks(0, 72, 12*ms, "a")
		}
		hold := func(seq int, name string, from, to history.Instant) {
			for i, phase := range []history.Phase{history.Call, history.OK} {
				s.add(1, []history.Instant{from, to}[i], history.Event{
					Seq: seq, Name: name, Op: history.Acquire, Phase: phase, Several: with != "", Token: 600,
					Nonce: "m", Deadline: 9 * second,
				})
			}
		}
		if with != "" {
			hold(70, with, 12*ms, 4*second)
		}
		hold(71, "a", 12*ms, 4*second)
		s.events = slices.DeleteFunc(s.events, func(e history.Event) bool {
			return e.Proc == 1 && e.Name == "a" && e.Seq < 70
		})
		if v := s.judge(t).Find("K7"); len(v.Faults) != c.faults {
			t.Errorf("%+v: %v", c, v)
		}
	}
}

// Of a lock that nobody has, by all that is known, somebody may have been granted it who gave up,
// and whose lease has to end.
func TestWhoGaveUp_KeepsNoLockForLongerThanALease(t *testing.T) {
	for _, c := range []struct {
		asked, granted history.Instant
		faults         int
	}{
		{12 * ms, 1210 * ms, 0}, // it is given back at 19 ms: a lease of 1 s, and 200 ms are the machine's
		{12 * ms, 1230 * ms, 1},
		{500 * ms, 2690 * ms, 0}, // nobody asked at first: a lease and a claim, of 1 s each
		{500 * ms, 2710 * ms, 1},
		{4000 * ms, 4010 * ms, 0}, // nobody wanted it before
	} {
		s := sound()
		s.about.Quiet, s.about.End = 1, 9*second
		s.without(1, history.Acquire)
		s.without(1, history.Read)
		s.without(1, history.Write)
		s.without(1, history.Release)
		s.asks(2, 1, 12*ms, "a")
		s.add(2, 30*ms,
			history.Event{Seq: 1, Op: history.Acquire, Phase: history.Fail, Name: "a", Late: time.Millisecond})
		s.asks(1, 1, c.asked, "a")
		s.add(1, c.granted,
			history.Event{
				Seq: 1, Op: history.Acquire, Phase: history.OK, Name: "a", Token: 200, Nonce: "m", Deadline: 9 * second,
			})
		if v := s.judge(t).Find("K7"); len(v.Faults) != c.faults {
			t.Errorf("asked for at %v, granted at %v: %v", time.Duration(c.asked), time.Duration(c.granted), v)
		}
	}
}
