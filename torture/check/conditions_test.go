package check

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
	"github.com/interlock-go/interlock/torture/worker"
)

// parks is a wait for the condition from one instant to another; woken is the token after it, or 0.
func (s *story) parks(gor int, gave uint64, from, to history.Instant, woken uint64) {
	e := history.Event{Gor: gor, Seq: 40, Name: worker.Conditional, Op: history.Wait, Phase: history.Call, Token: gave}
	s.add(0, from, e)
	e.Phase, e.Token = history.Fail, 0
	if woken != 0 {
		e.Phase, e.Token, e.Deadline = history.OK, woken, to+900*ms
	}
	s.add(0, to, e)
}

func (s *story) signals(op history.Op, token uint64, at history.Instant) {
	e := history.Event{Gor: 9, Seq: int(token), Name: worker.Conditional, Op: op, Phase: history.Call, Token: token}
	s.add(0, at, e)
	e.Phase = history.OK
	s.add(0, at, e)
}

func TestConditions_ThatGoWrong_AreFound(t *testing.T) {
	findEach(t, []spoiled{
		{"K11", "gave up token 400 and has 399 after the wait", func(s *story) {
			s.about.Faults = []target.Fault{target.Cut}
			s.parks(1, 400, 1*second, 2*second, 399)
		}},
		{"K11", "waited in vain since it gave up token 400: 1 signals came", func(s *story) {
			s.parks(1, 400, 1*second, 5*second, 0)
			s.signals(history.Signal, 401, 2*second)
		}},
		{"K11", "goroutine 1: it waited in vain since it gave up token 400: 1", func(s *story) {
			s.parks(1, 400, 1*second, 5*second, 0) // has waited for longer
			s.parks(2, 401, 1*second, 5*second, 403)
			s.signals(history.Signal, 402, 2*second)
		}},
		{"K11", "goroutine 2: it waited in vain since it gave up token 401: 1 signals came, and 1 had", func(s *story) {
			s.parks(1, 400, 1*second, 3*second, 403)
			s.parks(2, 401, 1*second, 5*second, 0)
			s.signals(history.Broadcast, 402, 2*second)
		}},
		{"K11", "goroutine 2: it was woken by nobody after it gave up token 401", func(s *story) {
			s.parks(1, 400, 1*second, 3*second, 403)
			s.parks(2, 401, 1*second, 3*second, 404)
			s.signals(history.Signal, 402, 2*second)
		}},
	})
}

func TestConditionsAsTheyMayBe_AreKept(t *testing.T) {
	for name, tell := range map[string]func(s *story){
		"one each": func(s *story) {
			s.parks(1, 400, 1*second, 3*second, 404)
			s.parks(2, 401, 1*second, 3*second, 405)
			s.signals(history.Signal, 402, 2*second)
			s.signals(history.Signal, 403, 2*second)
		},
		"all at once": func(s *story) {
			s.parks(1, 400, 1*second, 3*second, 404)
			s.parks(2, 401, 1*second, 3*second, 405)
			s.signals(history.Broadcast, 402, 2*second)
		},
		"nobody waits": func(s *story) { s.signals(history.Signal, 402, 2*second) },
		"nobody signals": func(s *story) {
			s.signals(history.Signal, 399, 2*second)
			s.parks(1, 400, 1*second, 5*second, 0)
		},
		"its time was over just then": func(s *story) {
			s.parks(1, 400, 1*second, 3*second, 0)
			s.signals(history.Signal, 401, 2*second)
		},
		"the first may have been woken as its time was over": func(s *story) {
			s.parks(1, 400, 1*second, 2*second+500*ms, 0)
			s.parks(2, 401, 1*second, 9*second, 0)
			s.signals(history.Signal, 402, 2*second)
		},
		"a fault": func(s *story) {
			s.about.Faults = []target.Fault{target.Cut}
			s.parks(1, 400, 1*second, 5*second, 0)
			s.parks(2, 402, 1*second, 5*second, 403)
			s.signals(history.Signal, 401, 2*second)
		},
		"the processor was taken away again and again": func(s *story) {
			s.parks(1, 400, 1*second, 5*second, 0)
			s.signals(history.Signal, 401, 2*second)
			for at := 1500 * ms; at < 5*second; at += 250 * ms {
				s.add(1, at, history.Event{Op: history.Lag, Took: 60 * time.Millisecond})
			}
		},
		"the processor was taken away": func(s *story) {
			s.parks(1, 400, 1*second, 5*second, 0)
			s.signals(history.Signal, 401, 2*second)
			s.add(1, 3*second, history.Event{Op: history.Lag, Took: 400 * time.Millisecond})
		},
	} {
		s := sound()
		tell(s)
		if v := s.judge(t).Find("K11"); len(v.Faults) > 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
}
