package check

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/torture/history"
)

// Process 0 has the lock from 11 ms on, looks for the last time at 18 and gives it back at 19.
func TestDoubleGrants_AreCounted_ThoughNobodyLooked(t *testing.T) {
	is := func(e *history.Event, op history.Op) bool { return e.Proc == 0 && e.Op == op }
	deadline := func(s *story, at history.Instant) {
		for i := range s.events {
			if e := &s.events[i]; e.Proc == 0 && e.Deadline != 0 {
				e.Deadline = at
			}
		}
	}
	lost := func(s *story, told, ended history.Instant) {
		s.events = slices.DeleteFunc(s.events, func(e history.Event) bool { return is(&e, history.Release) })
		s.add(0, told, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100, Deadline: ended})
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
		{"before the loss was told", 25 * ms, func(s *story) { lost(s, 31*ms, 30*ms) }, 1, 0},
		{"after the loss was told", 32 * ms, func(s *story) { lost(s, 31*ms, 30*ms) }, 0, 0},
		{"when it was known, and before that was recorded", 30*ms + ms/2, func(s *story) { lost(s, 31*ms, 30*ms) }, 0, 0},
		{"when the lease had run out, which was noticed later", 25 * ms, func(s *story) {
			deadline(s, 22*ms)
			lost(s, 31*ms, 30*ms)
		}, 0, 0},
		{"when the lease had run out, which was noticed as it was given back", 18*ms + ms/2, func(s *story) { deadline(s, 18*ms+ms/4) }, 0, 0},
		{"when its process had been killed", 25 * ms, func(s *story) {
			s.events = slices.DeleteFunc(s.events, func(e history.Event) bool { return is(&e, history.Release) })
		}, 0, 0},
		{"without a lease", 18*ms + ms/2, func(s *story) { deadline(s, 0) }, 1, 0},
	} {
		s := sound()
		s.move(1, c.granted-31*ms)
		if c.more != nil {
			c.more(s)
		}
		rep := s.judge(t)
		if got := rep.Figures.Doubles; got != c.doubles {
			t.Errorf("granted %s: %d double grants, want %d", c.name, got, c.doubles)
		}
		if v := rep.Find("K4"); len(v.Faults) != c.sure {
			t.Errorf("granted %s: %v, want %d", c.name, v, c.sure)
		}
	}
}
