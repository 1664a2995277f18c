package check

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
)

// Who gets no lock after the faults has a reason only if what is shared kept it for longer than everybody's holds are
// to take: it held that, or others did who came before it.
func TestWhoGetsNoLock_AfterTheFaults_IsAFault_UnlessWhatIsSharedKeptIt(t *testing.T) {
	const quiet = 45 * ms // of 100: both have had the mutex
	hold := func(s *story, proc int, how history.Share, call, from, to history.Instant) {
		e := history.Event{Seq: 70, Name: "rw", Share: how, Op: history.Acquire, Phase: history.Call}
		s.add(proc, call, e)
		e.Phase, e.Token = history.OK, 500
		s.add(proc, from, e)
		s.add(proc, to, history.Event{Seq: 70, Name: "rw", Op: history.Release, Phase: history.Call, Token: 500})
	}
	wait := func(s *story, how history.Share, from history.Instant) {
		s.add(0, from, history.Event{Seq: 80, Name: "rw", Share: how, Op: history.Acquire, Phase: history.Call})
	}
	const reads, writes = history.Reads, history.Writes
	for _, c := range []struct {
		name string
		do   func(s *story)
		kept bool
	}{
		{"nobody has what it waits for", func(s *story) { wait(s, writes, 46*ms) }, false},
		{"another has it", func(s *story) { hold(s, 1, reads, 30*ms, 41*ms, 95*ms); wait(s, writes, 46*ms) }, true},
		{"another has it for a while", func(s *story) {
			hold(s, 1, reads, 30*ms, 41*ms, 64*ms)
			wait(s, writes, 46*ms)
		}, false},
		{"another had it", func(s *story) { hold(s, 1, reads, 1*ms, 2*ms, 44*ms); wait(s, writes, 46*ms) }, false},
		{"another has it, and it waits for too short a time", func(s *story) {
			hold(s, 1, reads, 30*ms, 41*ms, 95*ms)
			wait(s, writes, 82*ms)
		}, false},
		{"another is granted what it asked for later", func(s *story) {
			wait(s, writes, 46*ms)
			hold(s, 1, reads, 50*ms, 51*ms, 95*ms)
		}, false},
		{"another is granted what it asked for later, without an order", func(s *story) {
			s.about.Ordered = false
			wait(s, writes, 46*ms)
			hold(s, 1, reads, 50*ms, 51*ms, 95*ms)
		}, true},
		{"another is granted what it asked for later, but during the faults", func(s *story) {
			wait(s, writes, 30*ms)
			hold(s, 1, reads, 40*ms, 51*ms, 95*ms)
		}, true},
		{"another has the mutex", func(s *story) { hold(s, 1, "", 30*ms, 41*ms, 95*ms); wait(s, "", 46*ms) }, false},
		{"it goes on holding", func(s *story) { hold(s, 0, writes, 30*ms, 41*ms, 95*ms) }, true},
	} {
		s := sound()
		s.about.Faults = []target.Fault{target.Stop}
		s.about.Quiet, s.about.Hold, s.about.Lease = quiet, 10*time.Millisecond, 8*time.Millisecond
		s.hold(1, 2, 47*ms, 102) // it gets on
		c.do(s)
		if v := s.judge(t).Find("K7"); len(v.Faults) > 0 == c.kept {
			t.Errorf("%s: %v", c.name, v)
		}
	}
}

// A PostgreSQL serves first who has come first for as long as one statement waits; then the wait
// stands at the end again.
func TestWhoWaitsLongerThanAPlaceIsKept_MayBeOvertaken(t *testing.T) {
	// the other, who asks a second after
	for granted, faults := range map[history.Instant]int{29 * second: 1, 31 * second: 0} {
		s := sound()
		s.about.Engine, s.about.Faults = "postgres", []target.Fault{target.Stop}
		s.about.Quiet, s.about.End, s.about.Hold, s.about.Lease = 45*ms, 80*second, time.Second, time.Second
		s.hold(1, 2, 47*ms, 102)
		e := history.Event{Seq: 80, Name: "rw", Share: history.Writes, Op: history.Acquire, Phase: history.Call}
		s.add(0, 46*ms, e)
		e.Share = history.Reads
		s.add(1, second, e)
		e.Phase, e.Token = history.OK, 500
		s.add(1, granted, e)
		s.add(1, 70*second, history.Event{Seq: 80, Name: "rw", Op: history.Release, Phase: history.Call, Token: 500})
		if v := s.judge(t).Find("K7"); len(v.Faults) != faults {
			t.Errorf("overtaken after %v: %v", time.Duration(granted), v)
		}
	}
}
