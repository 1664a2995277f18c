package check

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// Process 0 has the lock from 11 ms on, looks for the last time at 18 and gives it back at 19. Where the engine keeps
// locks apart each double grant is a fault; where it cannot only those are counted as such of which both had looked.
func TestDoubleGrants_AreFound_ThoughNobodyLooked(t *testing.T) {
	deadline := func(s *story, at history.Instant) {
		for i := range s.events {
			if e := &s.events[i]; e.Proc == 0 && e.Deadline != 0 {
				e.Deadline = at
			}
		}
	}
	for _, c := range []struct {
		name    string
		granted history.Instant // to process 1
		more    func(s *story)
		doubles int
		sure    int // of them those at which both had looked
	}{
		{"after it was given back", 20 * ms, nil, 0, 0},
		{"before it was given back", 18*ms + ms/2, nil, 1, 0},
		{"while it was looked at", 15 * ms, nil, 1, 1},
		{"before the loss was told", 25 * ms, func(s *story) { s.loses(31*ms, 30*ms) }, 1, 0},
		{"after the loss was told", 32 * ms, func(s *story) { s.loses(31*ms, 30*ms) }, 0, 0},
		{"when it was known, and before that was recorded", 30*ms + ms/2, func(s *story) {
			s.loses(31*ms, 30*ms)
		}, 0, 0},
		{"when the lease had run out, which was noticed later", 25 * ms, func(s *story) {
			deadline(s, 22*ms)
			s.loses(31*ms, 30*ms)
		}, 0, 0},
		{"when the lease had run out, which was noticed as it was given back", 18*ms + ms/2, func(s *story) {
			deadline(s, 18*ms+ms/4)
		}, 0, 0},
		{"when its process had been killed", 25 * ms, func(s *story) {
			s.without(0, history.Release)
		}, 0, 0},
		{"without a lease", 18*ms + ms/2, func(s *story) { deadline(s, 0) }, 1, 0},
	} {
		for fault, faults := range map[target.Fault]int{target.Stop: c.doubles, target.Wipe: c.sure} {
			s := sound()
			s.about.Faults = []target.Fault{fault}
			s.move(1, c.granted-31*ms)
			if c.more != nil {
				c.more(s)
			}
			rep := s.judge(t)
			if got := rep.Figures.Doubles; got != c.doubles {
				t.Errorf("granted %s, under %s: %d double grants, want %d", c.name, fault, got, c.doubles)
			}
			if v := rep.Find("K4"); len(v.Faults) != faults || v.OK() != (fault == target.Wipe || faults == 0) {
				t.Errorf("granted %s, under %s: %v, want %d", c.name, fault, v, faults)
			}
		}
	}
}

// loses has process 0 lose its hold instead of giving it back.
func (s *story) loses(told, ended history.Instant) {
	s.without(0, history.Release)
	s.add(0, told, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100, Deadline: ended})
}

// without takes out all of one kind that a process did.
func (s *story) without(proc int, op history.Op) {
	s.events = slices.DeleteFunc(s.events, func(e history.Event) bool { return e.Proc == proc && e.Op == op })
}

// Where a session is a connection it may end with that at the server first. Its holder has the time to hear of it which
// K5 allows, and for which it stands still; but what the engine says was given back was there until then.
func TestADoubleGrant_WhileTheEndOfAConnectionIsNews_IsNoFault(t *testing.T) {
	released := func(phase history.Phase) func(s *story) {
		return func(s *story) {
			for i := range s.events {
				if e := &s.events[i]; e.Proc == 0 && e.Op == history.Release && e.Phase != history.Call {
					e.Phase = phase
				}
			}
		}
	}
	for _, c := range []struct {
		name    string
		granted history.Instant
		leases  bool // instead of connections
		more    func(s *story)
		faults  int
	}{
		{"and it is told soon", 25 * ms, false, func(s *story) { s.loses(70*ms, 70*ms) }, 0},
		{"and it is told soon, and its holder had looked", 15 * ms, false, func(s *story) { s.loses(60*ms, 60*ms) }, 0},
		{"and its holder looks late", 15 * ms, false, func(s *story) {
			s.add(0, 75*ms,
				history.Event{
					Seq: 1, Op: history.Read, Phase: history.Call, Name: "a", Token: 100, Deadline: 900 * ms,
					Nonce: "n",
				})
			s.loses(80*ms, 80*ms)
		}, 1},
		{"and it is told late", 25 * ms, false, func(s *story) { s.loses(80*ms, 80*ms) }, 1},
		{"and it is told soon, of a lease", 25 * ms, true, func(s *story) { s.loses(70*ms, 70*ms) }, 1},
		{"and it stands still", 25 * ms, false, func(s *story) {
			s.loses(80*ms, 80*ms)
			s.blows = []run.Blow{{Fault: target.Stop, Proc: 0, From: 20 * ms, To: 79 * ms}}
		}, 0},
		{"and it stands still for less", 25 * ms, false, func(s *story) {
			s.loses(380*ms, 380*ms)
			s.blows = []run.Blow{{Fault: target.Stop, Proc: 0, From: 20 * ms, To: 79 * ms}}
		}, 1},
		{"and it is given back", 18*ms + ms/2, false, released(history.OK), 1},
		{"and it is given back while its connection is reset", 18*ms + ms/2, false, func(s *story) {
			released(history.OK)(s)
			s.blows = []run.Blow{{Fault: target.Reset, Proc: 0, From: 16 * ms, To: 50 * ms}}
		}, 0},
		{"and it is given back while another's connection is reset", 18*ms + ms/2, false, func(s *story) {
			released(history.OK)(s)
			s.blows = []run.Blow{{Fault: target.Reset, Proc: 1, From: 16 * ms, To: 50 * ms}}
		}, 1},
		{"and it could not be given back", 18*ms + ms/2, false, released(history.Fail), 0},
		{"and nobody knows whether it was given back", 18*ms + ms/2, false, released(history.Unknown), 0},
	} {
		s := sound()
		s.about.Faults, s.about.Sessions = []target.Fault{target.Stop}, !c.leases
		if !c.leases {
			s.about.Engine = "mariadb"
		}
		s.move(1, c.granted-31*ms)
		c.more(s)
		rep := s.judge(t)
		if v := rep.Find("K4"); len(v.Faults) != c.faults || v.Spared != 1-c.faults || rep.Figures.Doubles != 1 {
			t.Errorf("%s: %v, want %d; %d double grants, want 1", c.name, v, c.faults, rep.Figures.Doubles)
		}
	}
}

// A hold proves something if another grant could have been found in it: not if Lock returned too late, nor if its
// process was killed before it looked.
func TestHolds_ThatLastForNoTime_AreNotCounted(t *testing.T) {
	for name, c := range map[string]struct {
		of   int
		more func(s *story)
	}{
		"both are given back": {2, func(*story) {}},
		"nobody looks": {2, func(s *story) {
			s.without(0, history.Read)
			s.without(0, history.Write)
		}},
		"one is killed after it looked": {2, func(s *story) { s.without(0, history.Release) }},
		"one is killed before it looked": {1, func(s *story) {
			for _, op := range []history.Op{history.Read, history.Write, history.Release} {
				s.without(0, op)
			}
		}},
		"one was over when Lock returned": {1, func(s *story) {
			for i := range s.events {
				if e := &s.events[i]; e.Proc == 0 && e.Deadline != 0 {
					e.Deadline = 11 * ms
				}
			}
		}},
	} {
		s := sound()
		c.more(s)
		if v := s.judge(t).Find("K4"); v.Of != c.of || len(v.Faults) > 0 {
			t.Errorf("%s: %v, want of %d", name, v, c.of)
		}
	}
}
