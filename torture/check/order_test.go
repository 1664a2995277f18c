package check

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
)

// waits adds a wait for the lock that the sound run has, and what follows: 10 ms of it.
func (s *story) waits(proc, gor int, from, to history.Instant, token uint64) {
	e := history.Event{Gor: gor, Seq: 70 + int(token), Name: "a", Op: history.Acquire, Phase: history.Call}
	s.add(proc, from, e)
	e.Phase, e.Token, e.Deadline, e.Nonce = history.OK, token, to+900*ms, "n"
	s.add(proc, to, e)
	e.Op, e.Phase = history.Release, history.Call
	s.add(proc, to+10*ms, e)
}

func TestWhoIsOvertaken_WithoutAFault_IsFound(t *testing.T) {
	findEach(t, []spoiled{
		{"K7", "process 1, goroutine 0, token 201 came later", func(s *story) {
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		}},
		{"K7", "process 0, goroutine 1, token 201 came later", func(s *story) {
			s.waits(0, 1, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		}},
		// its own process had it, but not its client
		{"K7", "process 1, goroutine 0, token 201 came later", func(s *story) {
			s.about.Clients = 2
			s.waits(0, 1, 90*ms, 495*ms, 200)
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		}},
		{"K7", "was not got within 6s", func(s *story) {
			s.add(0, 6*second,
				history.Event{Seq: 80, Op: history.Acquire, Phase: history.Fail, Name: "a", Took: 6 * time.Second})
		}},
	})
}

// Somebody of the same process stood in line earlier, or had the lock, or no order is promised.
func TestWhoIsNotOvertaken_IsNoFault(t *testing.T) {
	for name, tell := range map[string]func(s *story){
		"the other's process came earlier": func(s *story) {
			s.add(1, 95*ms, history.Event{Gor: 1, Seq: 5, Name: "a", Op: history.Acquire, Phase: history.Call})
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.add(1, 505*ms, history.Event{Gor: 1, Seq: 5, Name: "a", Op: history.Acquire, Phase: history.Fail})
			s.waits(0, 0, 100*ms, 600*ms, 202)
		},
		"its own process had it": func(s *story) {
			s.waits(0, 1, 90*ms, 495*ms, 200)
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		},
		"the other of its process has a name": func(s *story) {
			s.waits(0, 1, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
			for i := range s.events {
				s.events[i].Named = s.events[i].Gor == 1
			}
		},
		"under a fault": func(s *story) {
			s.about.Faults = []target.Fault{target.Cut}
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		},
		"it and the other were not run while its request was on the way, " +
			"each for less than would excuse everything": func(s *story) {
			s.add(0, 200*ms, history.Event{Op: history.Lag, Took: 80 * time.Millisecond})
			s.add(1, 300*ms, history.Event{Op: history.Lag, Took: 80 * time.Millisecond})
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		},
		"without an order": func(s *story) {
			s.about.Ordered = false
			s.waits(1, 0, 500*ms, 510*ms, 201)
			s.waits(0, 0, 100*ms, 600*ms, 202)
		},
	} {
		s := sound()
		tell(s)
		if v := s.judge(t).Find("K7"); len(v.Faults) > 0 {
			t.Errorf("%s: %v", name, v)
		}
	}
}
