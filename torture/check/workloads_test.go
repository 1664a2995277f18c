package check

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
)

const second = history.Instant(time.Second)

// The name is the same, and what a former life of the process had is not its own.
func TestWhoComesBack_AndHasItsOldHold_IsFound(t *testing.T) {
	findEach(t, []spoiled{{"K3", "came back, and has the hold of its life 1", func(s *story) {
		s.add(1, 50*ms, history.Event{Op: history.Start})
		s.hold(1, 1, 55*ms, 101)
	}}})
}

func TestALoss_ThatIsToldLate_IsFound(t *testing.T) {
	overrun := func(s *story, more func(deadline history.Instant)) {
		const deadline = 45 * ms
		for i := range s.events {
			if e := &s.events[i]; e.Proc == 1 && e.Seq == 1 {
				e.Deadline, e.Fixed = deadline, true
				if e.Op == history.Release {
					e.At += 100 * ms
				}
			}
		}
		more(deadline)
	}
	findEach(t, []spoiled{
		{"K5", "its end was told 70ms late", func(s *story) {
			overrun(s, func(d history.Instant) {
				s.add(1, d+70*ms-1,
					history.Event{
						Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 101, Deadline: d + 69*ms,
					})
			})
		}},
		{"K5", "late, if at all", func(s *story) { overrun(s, func(history.Instant) {}) }},
	})
	s := sound()
	overrun(s, func(d history.Instant) {
		s.add(1, d+10*ms,
			history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 101, Deadline: d})
	})
	if v := s.judge(t).Find("K5"); len(v.Faults) > 0 {
		t.Errorf("told in time: %v", v)
	}
}

// Where a session is behind the holds, a fixed lease lasts as long as it was taken for, and not only until the
// session's end as it was known at the grant: that moves.
func TestAFixedLease_OnASession_EndsWithItself(t *testing.T) {
	for _, c := range []struct {
		name        string
		ended, told history.Instant // after its end; told is 0 if it is given back without a word
		sessions    bool
		faults      int
	}{
		{"told in time", ms, 2 * ms, true, 0},
		{"told in time, but there is no session", ms, 2 * ms, false, 1},
		{"told late", 69 * ms, 70 * ms, true, 1},
		{"never told", 0, 0, true, 1},
		{"lost with the session", -100 * ms, -99 * ms, true, 0},
		{"lost with the session, and told late", -100 * ms, -30 * ms, true, 1},
	} {
		s := sound()
		s.about.Sessions = c.sessions
		const from, lasts = 31*ms + 1, 250 * ms // a quarter of the usual lease
		for i := range s.events {
			if e := &s.events[i]; e.Proc == 1 && e.Seq == 1 {
				e.Deadline, e.Fixed = 120*ms, true
				if e.Op == history.Release {
					e.At = from + lasts + 100*ms
				}
			}
		}
		if c.told != 0 {
			s.add(1, from+lasts+c.told-1, history.Event{
				Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 101, Deadline: from + lasts + c.ended,
			})
		}
		if v := s.judge(t).Find("K5"); len(v.Faults) != c.faults {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

func TestLeaks_OfConnections_AreFound(t *testing.T) {
	findEach(t, []spoiled{{"K10", "1 of them connections", func(s *story) { s.events[len(s.events)-1].Sockets = 1 }}})
}

// turns is a hold of a read-write lock that changes its mode: taken at from, looked at each 10 ms, turned after 20 ms.
func (s *story) turns(
	proc int, from history.Instant, how history.Share, to history.Share, phase history.Phase, token uint64,
) {
	e := history.Event{Seq: 90, Name: "rw", Op: history.Acquire, Phase: history.Call, Share: how}
	s.add(proc, from, e)
	e.Phase, e.Token, e.Deadline = history.OK, 300, from+900*ms
	s.add(proc, from, e)
	look := func(after history.Instant) {
		s.add(proc, from+after, history.Event{
			Seq: 90, Name: "rw", Op: history.Read, Phase: history.Call, Token: 300, Deadline: from + 900*ms,
		})
	}
	look(10 * ms)
	s.add(proc, from+15*ms, history.Event{Seq: 90, Name: "rw", Op: history.Turn, Phase: history.Call, Share: to})
	s.add(proc, from+20*ms, history.Event{
		Seq: 90, Name: "rw", Op: history.Turn, Phase: phase, Share: to, Token: token, Deadline: from + 900*ms,
		Err: "why",
	})
	look(30 * ms)
}

func TestChangesOfModes_ThatGoWrong_AreFound(t *testing.T) {
	const reads, writes, upgrades = history.Reads, history.Writes, history.Upgrades
	findEach(t, []spoiled{
		{"K11", "upgrades beside", func(s *story) { s.share(0, 5*ms, upgrades, 0); s.share(1, 7*ms, upgrades, 0) }},
		{"K11", "writes beside", func(s *story) { // a reader is still in when the upgrade is granted
			s.share(0, 13*ms, reads, 0) // from 18 to 23
			s.turns(1, 0, upgrades, writes, history.OK, 301)
		}},
		{"K11", "writes beside", func(s *story) { // a writer was in between, while the upgrade waited
			s.share(0, 7*ms, writes, 0) // from 12 to 17
			s.turns(1, 0, upgrades, writes, history.OK, 301)
		}},
		{"K11", "beside", func(s *story) { // a writer gets in while a downgrade is under way
			s.share(0, 7*ms, writes, 0)
			s.turns(1, 0, writes, reads, history.OK, 300)
		}},
		{"K11", "upgraded and has token 300", func(s *story) { s.turns(1, 0, upgrades, writes, history.OK, 300) }},
		{"K11", "downgraded and has token 301", func(s *story) { s.turns(1, 0, writes, reads, history.OK, 301) }},
		{"K11", "a plain reader came to write", func(s *story) { s.turns(1, 0, reads, writes, history.OK, 301) }},
		{"K11", "the token is 301", func(s *story) { s.turns(1, 0, reads, writes, history.Fail, 301) }},
		{"K11", "reads beside", func(s *story) { // what was refused is held as before
			s.share(0, 18*ms, reads, 0)
			s.turns(1, 0, writes, reads, history.Fail, 300)
		}},
		{"K8", "60ms late", func(s *story) {
			s.add(1, 70*ms, history.Event{Seq: 2, Op: history.Turn, Phase: history.Fail, Late: 60 * time.Millisecond})
		}},
	})
	s := sound()
	s.share(0, 38*ms, reads, 0) // from 43: the writer does not know that it has gone on as a reader
	s.turns(1, 20*ms, writes, reads, history.Unknown, 300)
	if rep := s.judge(t); len(rep.Find("K11").Faults) > 0 || rep.Figures.Turns != 0 {
		t.Errorf("a downgrade that may have been done: %v", rep.Find("K11"))
	}
	s = sound()
	s.share(0, 3*ms, reads, 0) // until 13, and the upgrade is granted at 20
	s.turns(1, 0, upgrades, writes, history.OK, 301)
	s.turns(0, 100*ms, writes, reads, history.OK, 300)
	s.share(1, 117*ms, reads, 0) // from 122
	if v := s.judge(t).Find("K11"); len(v.Faults) > 0 || v.Of != 6 {
		t.Errorf("as it may be: %v", v)
	}
}
