package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// tells makes the release of the first hold one that is told of a loss, 880 ms before its deadline.
func (s *story) tells(reason interlock.LostReason) {
	for i := range s.events {
		if e := &s.events[i]; e.Token == 100 && e.Op == history.Release && e.Phase == history.OK {
			e.Phase, e.Reason = history.Fail, string(reason)
		}
	}
}

// hears has the holder of the first hold hear of a loss before it gives the hold back.
func (s *story) hears(reason interlock.LostReason, at, known history.Instant) {
	s.add(0, at, history.Event{
		Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100, Known: known, Deadline: min(at, known),
		Reason: string(reason),
	})
}

// under is a run in which that was done to the process, or to the servers if it is -1.
func (s *story) under(fault target.Fault, proc int, from, to history.Instant) {
	s.about.Faults = []target.Fault{fault}
	s.blows = []run.Blow{{From: from, To: to, Fault: fault, Proc: proc}}
}

// A loss that is told has a cause in the history, or it fails the run.
func TestALoss_NeedsACause(t *testing.T) {
	early := func(reason interlock.LostReason) func(*story) { return func(s *story) { s.tells(reason) } }
	over := func(s *story) { s.hears(interlock.LostUnconfirmed, 1100*ms, 1090*ms) }
	late := func(s *story) { s.hears(interlock.LostExpired, 1100*ms, 1090*ms) }
	heard := func(s *story) { s.hears(interlock.LostTaken, 15*ms, 900*ms) }
	const kept, nobody = "nothing had kept it from being renewed", "nobody did that"
	const nothing = "before its deadline, and nothing had ended it"
	for _, c := range []struct {
		name     string
		told     func(*story)
		engine   string
		fault    target.Fault
		proc     int
		from, to history.Instant
		says     string // nothing if there is a cause
	}{
		{"the answer was lost", early("taken"), "redis", target.LoseEnds, 0, 1 * ms, 90 * ms, nothing},
		{"all answers were lost", early("taken"), "redis", target.LoseReplies, 0, 1 * ms, 90 * ms, nothing},
		{"the way was cut", early("expired"), "redis", target.Cut, 0, 1 * ms, 90 * ms, nothing},
		{"it stood still", early("expired"), "redis", target.Stop, 0, 1 * ms, 18 * ms, nothing},
		{"its session was kept", early("session"), "etcd", target.Reset, 0, 1 * ms, 90 * ms, nothing},
		{"its session was a connection", early("session"), "postgres", target.Reset, 0, 1 * ms, 90 * ms, ""},
		{"another's connection ended", early("session"), "postgres", target.Reset, 1, 1 * ms, 90 * ms, nothing},
		{"all was deleted", early("taken"), "redis", target.Wipe, -1, 12 * ms, 13 * ms, ""},
		{"all was deleted later", early("taken"), "redis", target.Wipe, -1, 25 * ms, 26 * ms, nothing},
		{"the server forgot all", early("expired"), "redis", target.ServerKill, -1, 12 * ms, 13 * ms, ""},
		{"the server kept all", early("expired"), "redis-aof", target.ServerKill, -1, 12 * ms, 13 * ms, nothing},
		{"it was broken", early("broken"), "redis", target.Wipe, -1, 12 * ms, 13 * ms, nobody},
		{"it was adopted", early("adopted"), "redis", target.Wipe, -1, 12 * ms, 13 * ms, nobody},
		{"it was cut off for a lease", over, "redis", target.Cut, 0, 200 * ms, 1200 * ms, ""},
		{"another was cut off", over, "redis", target.Cut, 1, 200 * ms, 1200 * ms, kept},
		{"it was cut off before that", late, "redis", target.Cut, 0, -1300 * ms, -150 * ms, kept},
		{"the server stood still", late, "redis", target.ServerStop, -1, 200 * ms, 1200 * ms, ""},
		{"it stood still, and the lease ended", late, "redis", target.Stop, 0, 20 * ms, 1099 * ms, ""},
		{"answers to other requests were lost", over, "redis", target.LoseEnds, 0, 200 * ms, 1200 * ms, kept},
		{"scripts were forgotten", over, "redis", target.Forget, -1, 200 * ms, 1200 * ms, kept},
		{"the engine said so too early", heard, "redis", target.Cut, 0, 1 * ms, 90 * ms, nothing},
	} {
		s := sound()
		s.about.Engine = c.engine
		s.under(c.fault, c.proc, c.from, c.to)
		c.told(s)
		v := s.judge(t).Find("K6")
		if broken := c.says != ""; v.OK() == broken || broken && !strings.Contains(v.Faults[0], c.says) {
			t.Errorf("%s: %v, want %q", c.name, v, c.says)
		}
		if len(v.Faults) > 1 {
			t.Errorf("%s: one hold is %d cases", c.name, len(v.Faults))
		}
	}
}

// Whatever tells of a loss is judged: also a conversion, the end of one of several holds, and a wait for a condition,
// which tells of the hold that was given up for it.
func TestALoss_NeedsACause_WhoeverTellsOfIt(t *testing.T) {
	for _, op := range []history.Op{history.Turn, history.Leave, history.Wait} {
		s := sound()
		s.under(target.LoseEnds, 0, 1*ms, 90*ms)
		e := history.Event{
			Seq: 1, Op: op, Phase: history.Call, Name: "a", Token: 100, Deadline: 900 * ms, Share: history.Reads,
		}
		if op == history.Wait {
			e.Seq = 2
		}
		at := history.Instant(14)
		if op == history.Wait {
			at = 21
		}
		s.add(0, at*ms, e)
		e.Phase, e.Reason = history.Fail, string(interlock.LostTaken)
		s.add(0, (at+1)*ms, e)
		slices.SortStableFunc(s.events, func(a, b history.Event) int { return int(a.At - b.At) })
		if v := s.judge(t).Find("K6"); v.OK() || !strings.Contains(v.Faults[0], "nothing had ended it") {
			t.Errorf("%s: %v", op, v)
		}
	}
}

// What a machine does that is too busy for renewals excuses a lease that ran out, and nothing that an engine says of a
// lease that did not.
func TestALoss_OnABusyMachine_IsExcusedIfItsLeaseRanOut(t *testing.T) {
	for name, told := range map[string]func(*story){
		"ran out": func(s *story) { s.hears(interlock.LostUnconfirmed, 1100*ms, 1090*ms) },
		"did not": func(s *story) { s.tells(interlock.LostTaken) },
	} {
		s := sound()
		s.under(target.LoseEnds, 0, 1*ms, 90*ms)
		told(s)
		at := 19 * ms
		if name == "ran out" {
			at = 1000 * ms
		}
		s.add(0, at, history.Event{Op: history.Lag, Took: 400 * 1000 * 1000})
		if v := s.judge(t).Find("K6"); v.OK() != (name == "ran out") || v.OK() && v.Spared != 1 {
			t.Errorf("a lease that %s: %v, %d spared", name, v, v.Spared)
		}
	}
}

// A conversion may wait for longer than the lease that was left when it was asked for: the hold is renewed meanwhile,
// and what ends it then is its cause.
func TestALoss_ThatEndsALongWait_HasItsCauseBeforeTheEnd(t *testing.T) {
	for from, ok := range map[history.Instant]bool{-3000 * ms: false, 2000 * ms: true} {
		s := sound()
		s.under(target.Cut, 0, from, from+900*ms)
		e := history.Event{
			Seq: 1, Op: history.Turn, Phase: history.Call, Name: "a", Token: 100, Deadline: 900 * ms,
			Share: history.Writes,
		}
		s.add(0, 14*ms, e)
		e.Phase, e.Reason, e.Deadline = history.Fail, string(interlock.LostUnconfirmed), 2800*ms
		s.add(0, 2810*ms, e)
		for i := range s.events {
			if g := &s.events[i]; g.Token == 100 && g.Op == history.Release {
				g.At += 2900 * ms
			}
		}
		if v := s.judge(t).Find("K6"); v.OK() != ok {
			t.Errorf("the way was cut at %v: %v", from, v)
		}
	}
}

// How slow a disk was before the run had begun is not known, so a lease that ran out by then is not judged where
// servers wait for their disk.
func TestALoss_BeforeAnybodyWatchesTheDisk_IsNotJudged(t *testing.T) {
	for engine, ok := range map[string]bool{"redis": false, "redis-aof": true} {
		s := sound()
		s.about.Engine, s.about.Begin = engine, 500*ms
		s.under(target.Memory, -1, 3000*ms, 3100*ms)
		s.hears(interlock.LostUnconfirmed, 1100*ms, 1090*ms)
		if v := s.judge(t).Find("K6"); v.OK() != ok || ok && v.Spared != 1 {
			t.Errorf("%s: %v, %d spared", engine, v, v.Spared)
		}
	}
}

// A careless holder gives back what it has lost long after that, and is told again. What excuses the loss came before
// its end.
func TestALoss_ThatIsToldAgain_IsExcusedByWhatCameBeforeItsEnd(t *testing.T) {
	s := sound()
	s.under(target.LoseEnds, 0, 1*ms, 90*ms)
	s.hears(interlock.LostUnconfirmed, 1100*ms, 1090*ms)
	s.add(0, 500*ms, history.Event{Op: history.Lag, Took: 400 * 1000 * 1000})
	for i := range s.events {
		if e := &s.events[i]; e.Token == 100 && e.Op == history.Release {
			e.At, e.Deadline = e.At+1700*ms, 1090*ms
		}
	}
	s.tells(interlock.LostUnconfirmed)
	if v := s.judge(t).Find("K6"); !v.OK() || v.Spared != 1 {
		t.Errorf("%v, %d spared", v, v.Spared)
	}
}
