package check

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// retaining is sound with leases of 5 s: the first process gives the lock back at 20 ms, and the second asks for it at
// the one instant and has it at the other.
func retaining(asked, granted history.Instant) *story {
	s := sound()
	s.about.Workload, s.about.Lease = run.Retain, 5*time.Second
	s.about.Quiet, s.about.End = 1, 30*second
	s.events = slices.DeleteFunc(s.events, func(e history.Event) bool { return e.Proc == 1 && e.Op != history.Start })
	s.asks(1, 1, asked, "a")
	s.add(1, granted, history.Event{
		Seq: 1, Op: history.Acquire, Phase: history.OK, Name: "a", Token: 200, Nonce: "m", Deadline: granted + 5*second,
	})
	return s
}

// A retained lock outlives its process by 2 s, or by the hold's lease if the process dies at once or while nothing of
// it arrives. Then 2 s are for a claim of one of the dead, and 200 ms are the machine's.
func TestWhatIsRetained_OutlivesItsProcessByItsShortLease(t *testing.T) {
	const short, long = 4200 * ms, 7200 * ms
	for _, c := range []struct {
		name  string
		fault target.Fault
		died  history.Instant
		most  history.Instant // after the death
	}{
		{"long after the release", target.Kill, 1000 * ms, short},
		{"long after the release, as the next in line for another lock", target.KillWaiter, 1000 * ms, short},
		{"at once", target.Kill, 60 * ms, long},
		{"with requests under way", target.KillAsking, 1000 * ms, long},
	} {
		for late, faults := range map[history.Instant]int{-20 * ms: 0, 20 * ms: 1} {
			s := retaining(30*ms, c.died+c.most+late)
			s.about.Faults = []target.Fault{c.fault}
			s.blows = append(s.blows, run.Blow{Fault: c.fault, Proc: 0, From: c.died, To: c.died + ms})
			if v := s.judge(t).Find("K7"); len(v.Faults) != faults {
				t.Errorf("%s, %v late: %v", c.name, time.Duration(late), v)
			}
			s.about.Workload = "" // where nobody retains, the time does not run from a death after the release
			if v := s.judge(t).Find("K7"); len(v.Faults) != 1 && c.fault == target.KillAsking {
				t.Errorf("%s, and nothing was retained: %v", c.name, v)
			}
		}
	}
}

// A session is not shortened for what is retained.
func TestWhatIsRetained_OnAnEngineWithSessions_OutlivesItsProcessByTheSession(t *testing.T) {
	const died, most = 1000 * ms, 7200 * ms
	for late, faults := range map[history.Instant]int{-20 * ms: 0, 20 * ms: 1} {
		s := retaining(30*ms, died+most+late)
		s.about.Faults, s.about.Sessions = []target.Fault{target.Kill}, true
		s.blows = append(s.blows, run.Blow{Fault: target.Kill, Proc: 0, From: died, To: died + ms})
		if v := s.judge(t).Find("K7"); len(v.Faults) != faults {
			t.Errorf("%v late: %v", time.Duration(late), v)
		}
	}
}

func TestWhatIsRetainedByTheLiving_IsGivenBackWhenAsked(t *testing.T) {
	for granted, faults := range map[history.Instant]int{7100 * ms: 0, 7300 * ms: 1} { // asked for at 30 ms
		if v := retaining(30*ms, granted).judge(t).Find("K7"); len(v.Faults) != faults {
			t.Errorf("granted at %v: %v", time.Duration(granted), v)
		}
	}
}

// A try may be refused because somebody holds the lock or waits for it, and not because a client retains it.
func TestATry_OfWhatIsMerelyRetained_IsNotRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     history.Instant // of the answer, 10 ms after the call
		more   func(s *story)
		faults int
	}{
		{"while nobody has it", 360 * ms, nil, 1},
		{"while nobody has it, on a busy machine", 360 * ms, func(s *story) {
			s.add(1, 355*ms, history.Event{Op: history.Lag, Took: 50 * time.Millisecond})
		}, 0},
		{"while it is held", 38 * ms, nil, 0},
		{"while it is given back", 46 * ms, nil, 0},
		{"while another waits", 360 * ms, func(s *story) { s.asks(1, 9, 350*ms, "a") }, 0},
		{"while another waits for another lock", 360 * ms, func(s *story) { s.asks(1, 9, 350*ms, "b") }, 1},
		{"after another has given up", 360 * ms, func(s *story) {
			s.asks(1, 9, 200*ms, "a")
			s.add(1, 300*ms, history.Event{Seq: 9, Op: history.Acquire, Phase: history.Fail, Name: "a"})
		}, 0},
	} {
		s := sound() // the second process has the lock from 31 to 40 ms
		if c.more != nil {
			c.more(s)
		}
		try := history.Event{Seq: 7, Op: history.Acquire, Phase: history.Call, Name: "a", Try: true}
		s.add(0, c.at-10*ms, try)
		try.Phase, try.Took, try.Err = history.Fail, 10*time.Millisecond, "held"
		s.add(0, c.at, try)
		if v := s.judge(t).Find("K7"); len(v.Faults) != c.faults {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

// What counts as taken again is of one client, has the next token, and was asked for after the release.
func TestHoldsOfRetainedLocks_AreCounted_AndARunWithoutProvesNothing(t *testing.T) {
	for _, c := range []struct {
		proc  int
		token uint64
		at    history.Instant
		want  int
	}{{1, 102, 50 * ms, 1}, {0, 102, 50 * ms, 0}, {1, 103, 50 * ms, 0}, {1, 102, 39 * ms, 0}} {
		s := sound() // the second process gives token 101 back at 40 ms
		s.about.Workload = run.Retain
		s.hold(c.proc, 5, c.at, c.token)
		s.add(c.proc, c.at+5*ms, history.Event{Seq: 5, Op: history.Wanted, Phase: history.OK, Name: "a"})
		rep := s.judge(t)
		if f := rep.Figures; f.TakenOver != c.want || f.GaveWay != 1 {
			t.Errorf("%+v: %d taken again, %d gave way", c, f.TakenOver, f.GaveWay)
		}
		const says = "no lock was taken again that was retained"
		if why := rep.Inconclusive(); slices.Contains(why, says) != (c.want == 0) {
			t.Errorf("%+v: inconclusive because of %q", c, why)
		}
	}
}
