package check

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

func TestTimes_WithoutAGrant(t *testing.T) {
	s, want := sound(), Delays{19*time.Millisecond + 1}
	s.blows = []run.Blow{{Fault: target.ServerStop, Proc: -1, From: 12 * ms, To: 30 * ms}}
	if f := s.judge(t).Figures; !slices.Equal(f.Outages, want) || f.Failovers != nil {
		t.Errorf("without a grant: %v as a server was away, %v in failovers", f.Outages, f.Failovers)
	}
	s.blows[0].Fault = target.Failover
	if f := s.judge(t).Figures; !slices.Equal(f.Failovers, want) || f.Outages != nil {
		t.Errorf("without a grant: %v in failovers, %v as a server was away", f.Failovers, f.Outages)
	}
}

func TestTimes_UntilALossIsTold(t *testing.T) {
	s := sound()
	s.blows = []run.Blow{{Fault: target.Cut, Proc: 0, From: 12 * ms, To: 19 * ms}}
	s.add(0, 17*ms,
		history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100, Deadline: 15 * ms})
	f := s.judge(t).Figures
	if !slices.Equal(f.LossTold, Delays{2*time.Millisecond + 1}) {
		t.Errorf("from the hold's end: %v", f.LossTold)
	}
	if !slices.Equal(f.FaultTold, Delays{5*time.Millisecond + 1}) {
		t.Errorf("from the fault's begin: %v", f.FaultTold)
	}
	var twice Figures
	twice.Add(f)
	twice.Add(f)
	if len(twice.LossTold) != 2 || len(twice.FaultTold) != 2 {
		t.Errorf("twice: %v, %v", twice.LossTold, twice.FaultTold)
	}
	s.blows[0].Fault = target.Stop // it stood still and could not be told
	if f := s.judge(t).Figures; len(f.LossTold)+len(f.FaultTold) != 0 {
		t.Errorf("of who stood still: %v, %v", f.LossTold, f.FaultTold)
	}
}

// That a lease ends that was not to be renewed is no loss to anything.
func TestTimes_OfAnOverrun_AreNotThoseOfLosses(t *testing.T) {
	s := sound()
	s.add(0, 17*ms,
		history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100, Deadline: 15 * ms})
	s.blows = []run.Blow{{Fault: target.Cut, Proc: 0, From: 12 * ms, To: 19 * ms}}
	for i := range s.events {
		s.events[i].Fixed = s.events[i].Proc == 0
	}
	if f := s.judge(t).Figures; len(f.LossTold)+len(f.FaultTold) != 0 {
		t.Errorf("got %v, %v", f.LossTold, f.FaultTold)
	}
}

func TestDelays_AreSummedUp(t *testing.T) {
	var d Delays
	for i := range 200 {
		d = append(d, time.Duration(200-i)*time.Millisecond)
	}
	if got, want := d.String(), "101ms / 198ms / 200ms of 200"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := d[:99].String(), "151ms / longest 200ms of 99"; got != want {
		t.Errorf("of fewer than 100: %s, want %s", got, want)
	}
	if got := Delays(nil).String(); got != "–" {
		t.Errorf("of none: %s", got)
	}
}
