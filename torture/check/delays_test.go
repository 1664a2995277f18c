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
	s := sound()
	s.blows = []run.Blow{{Fault: target.ServerStop, Proc: -1, From: 12 * ms, To: 30 * ms}}
	if got := s.judge(t).Figures.Outages; !slices.Equal(got, Delays{19*time.Millisecond + 1}) {
		t.Errorf("without a grant: %v", got)
	}
}

func TestTimes_UntilALossIsTold(t *testing.T) {
	s := sound()
	s.blows = []run.Blow{{Fault: target.Cut, Proc: 0, From: 12 * ms, To: 19 * ms}}
	s.add(0, 17*ms, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100})
	if got := s.judge(t).Figures.LossTold; !slices.Equal(got, Delays{5*time.Millisecond + 1}) {
		t.Errorf("until the loss was told: %v", got)
	}
	s.blows[0].Fault = target.Stop // it stood still and could not be told
	if got := s.judge(t).Figures.LossTold; len(got) != 0 {
		t.Errorf("of who stood still: %v", got)
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
	if got := Delays(nil).String(); got != "–" {
		t.Errorf("of none: %s", got)
	}
}
